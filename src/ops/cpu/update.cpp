// Ops that update parameters, gradients and averages in one pass each (spec §7, §8.1, §11), and FakeQuant.
#include <cmath>

#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {
namespace {

double scalar(const Tensor& scalars, StepScalar slot) { return scalars.as<double>()[static_cast<size_t>(slot)]; }
double factor_or_one(const Tensor& factor) { return factor ? factor.as<double>()[0] : 1.0; }

void blend(Queue& queue, double keep, double share, const Tensor& target, const Tensor& source) {
  const UpdateKernels& update = kernels().update;
  float* to = target.as<float>();
  const float* from = source.as<float>();
  for_elements(queue, target.numel(),
               [&](RowRange range) { update.blend(static_cast<float>(keep), static_cast<float>(share), range, to, from); });
}

}  // namespace

void forward(const Fill& op, const Forward<Fill>& call) {
  float* x = call.in.x.as<float>();
  for_elements(*call.queue, call.in.x.numel(),
               [&](RowRange range) { std::fill(x + range.begin, x + range.end, static_cast<float>(op.value)); });
}

void forward(const SumSquares& op, const Forward<SumSquares>& call) {
  const UpdateKernels& update = kernels().update;
  const float* x = call.in.x.as<float>();
  double* partials = reinterpret_cast<double*>(call.workspace.data);
  for_chunks(*call.queue, call.in.x.numel(), 1,
             [&](int64_t chunk, RowRange range) { partials[chunk] = update.sum_squares(x, range); });
  call.in.totals.as<double>()[op.slot] = sum_chunks(partials, 1, 0);
}

void forward(const ClipCoefficient& op, const Forward<ClipCoefficient>& call) {
  const double* totals = call.in.totals.as<double>();
  double squares = 0;
  for (int64_t i = 0; i < call.in.totals.numel(); ++i) squares += totals[i];
  const double norm = std::sqrt(squares);
  double* clip = call.in.clip.as<double>();
  clip[0] = op.max_norm > 0 ? std::min(1.0, op.max_norm / (norm + 1e-6)) : 1.0;
  clip[1] = norm;
}

void forward(const AccumulateScaled& op, const Forward<AccumulateScaled>& call) {
  blend(*call.queue, op.overwrite ? 0.0 : 1.0, op.factor * factor_or_one(call.in.coefficient), call.in.target, call.in.source);
}

void forward(const AdamWUpdate& op, const Forward<AdamWUpdate>& call) {
  const double lr = op.learning_rate * scalar(call.in.scalars, StepScalar::learning_rate_scale);
  const double t = scalar(call.in.scalars, StepScalar::adam_step);
  const AdamWFactors factors{.clip = static_cast<float>(factor_or_one(call.in.clip)),
                             .beta1 = static_cast<float>(op.beta1),
                             .one_minus_beta1 = static_cast<float>(1 - op.beta1),
                             .beta2 = static_cast<float>(op.beta2),
                             .one_minus_beta2 = static_cast<float>(1 - op.beta2),
                             .decay = static_cast<float>(1 - lr * op.weight_decay),
                             .step = static_cast<float>(lr / (1 - std::pow(op.beta1, t))),
                             .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(op.beta2, t))),
                             .eps = static_cast<float>(op.eps)};
  const UpdateKernels& update = kernels().update;
  float *param = call.in.param.as<float>(), *m = call.in.m.as<float>(), *v = call.in.v.as<float>();
  const float* grad = call.in.grad.as<float>();
  for_elements(*call.queue, call.in.param.numel(), [&](RowRange range) { update.adamw(factors, range, param, grad, m, v); });
}

void forward(const MuonMomentum& op, const Forward<MuonMomentum>& call) {
  const MomentumFactors factors{.clip = static_cast<float>(factor_or_one(call.in.clip)),
                                .momentum = static_cast<float>(scalar(call.in.scalars, StepScalar::momentum)),
                                .columns = call.in.grad.cols(),
                                .row_norm = op.row_norm};
  const UpdateKernels& update = kernels().update;
  float *buffer = call.in.buffer.as<float>(), *u = call.out.u.as<float>();
  const float* grad = call.in.grad.as<float>();
  for_rows(*call.queue, call.in.grad.rows(), 3 * factors.columns,
           [&](RowRange range) { update.momentum(factors, range, grad, buffer, u); });
}

void forward(const MuonApply& op, const Forward<MuonApply>& call) {
  const double lr = op.learning_rate * scalar(call.in.scalars, StepScalar::learning_rate_scale);
  const double shape = static_cast<double>(call.in.param.dim(1)) / static_cast<double>(call.in.param.dim(2));
  blend(*call.queue, 1 - lr * op.weight_decay, -lr * std::sqrt(std::max(1.0, shape)), call.in.param, call.in.o);
}

void forward(const Lerp& op, const Forward<Lerp>& call) {
  const double weight = op.slot ? scalar(call.in.scalars, *op.slot) : op.weight;
  blend(*call.queue, 1 - weight, weight, call.in.target, call.in.source);
}

void forward(const FakeQuant& op, const Forward<FakeQuant>& call) {
  forward_by_rows(op, call, call.in.weight.rows(), 2 * call.in.weight.cols());
}

void backward(const FakeQuant& op, const Backward<FakeQuant>& call) {
  backward_by_rows(op, call, call.in.weight.rows(), 2 * call.in.weight.cols());
}

}  // namespace fairway::cpu
