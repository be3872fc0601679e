// OffsetFit (scoring spec §2.4): parts of a group's rows are shared out, the two products with the table are those of all
// groups.
#include <algorithm>

#include "base/error.h"
#include "ops/cpu/adamw_factors.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"

namespace fairway::cpu {
namespace {

constexpr int64_t kParts = OffsetFit::kParts;

struct Workspace {
  float* of_parts;            // (G·kParts, 3, V): z, its gradient, their sum
  Tensor residual, gradient;  // (G, V), (G, D)
};

Workspace workspace_of(const Forward<OffsetFit>& call) {
  const int64_t groups = call.in.offset.rows(), vocab = call.in.table.dim(0);
  auto* at = reinterpret_cast<float*>(call.workspace.data);
  float* residual = at + groups * kParts * 3 * vocab;
  const auto view = [](float* data, Shape shape) { return make_view(reinterpret_cast<std::byte*>(data), {shape, DType::f32}); };
  return {at, view(residual, {groups, vocab}), view(residual + groups * vocab, call.in.offset.spec.shape)};
}

RowRange rows_of(const Forward<OffsetFit>& call, int64_t part) {
  const int64_t each = call.in.logits.rows() / call.in.offset.rows(), first = part / kParts * each;
  return {first + each * (part % kParts) / kParts, first + each * (part % kParts + 1) / kParts};
}

int64_t targets_of(const Forward<OffsetFit>& call, int64_t group) {
  const int64_t each = call.in.targets.numel() / call.in.offset.rows();
  const int32_t* target = call.in.targets.as<int32_t>() + group * each;
  return std::count_if(target, target + each, [](int32_t t) { return t >= 0; });
}

// Σ (p − onehot)·(1 − (z/cap)²) over a part's rows.
void sum_part(const OffsetFit& op, const Forward<OffsetFit>& call, int64_t part, float* of_part) {
  const int64_t vocab = call.in.table.dim(0);
  const LossKernels& loss = kernels().loss;
  float *z = of_part, *row = z + vocab, *sum = row + vocab;
  std::fill_n(sum, vocab, 0.0f);
  const float* shift = call.out.shift.as<float>() + part / kParts * vocab;
  const RowRange rows = rows_of(call, part);
  for (int64_t j = rows.begin; j < rows.end; ++j) {
    const int32_t target = call.in.targets.as<int32_t>()[j];
    if (target < 0) continue;
    FAIRWAY_ASSERT(target < vocab, "target outside of the vocabulary");
    const float* u = call.in.logits.as<float>() + j * vocab;
    for (int64_t v = 0; v < vocab; ++v) z[v] = u[v] + shift[v];
    const auto cap = static_cast<float>(op.cap);
    const auto lse = static_cast<float>(loss.softcap(z, vocab, cap));
    loss.softcap_grad(z, row, {.count = vocab, .target = target, .cap = cap, .lse = lse, .factor = 1});
    for (int64_t v = 0; v < vocab; ++v) sum[v] += row[v];
  }
}

void mean_residuals(const Forward<OffsetFit>& call, const Workspace& work, int64_t group) {
  const int64_t vocab = call.in.table.dim(0);
  const float* sums = work.of_parts + group * kParts * 3 * vocab + 2 * vocab;
  const auto count = static_cast<double>(targets_of(call, group));
  for (int64_t v = 0; v < vocab; ++v) {
    double sum = 0;
    for (int64_t part = 0; part < kParts; ++part) sum += static_cast<double>(sums[part * 3 * vocab + v]);
    work.residual.as<float>()[group * vocab + v] = count > 0 ? static_cast<float>(sum / count) : 0.0f;
  }
}

void step(const OffsetFit& op, const Forward<OffsetFit>& call, const Workspace& work, int64_t taken) {
  const int64_t groups = call.in.offset.rows(), vocab = call.in.table.dim(0), width = call.in.offset.cols();
  for_tasks(*call.queue, groups * kParts, call.in.logits.numel(),
            [&](int64_t part) { sum_part(op, call, part, work.of_parts + part * 3 * vocab); });
  for_tasks(*call.queue, groups, groups * kParts * vocab, [&](int64_t group) { mean_residuals(call, work, group); });
  product(*call.queue, times_weight(work.residual, call.in.table.as<float>(), work.gradient));
  const AdamWFactors factors = adamw_factors(op, op.learning_rate, static_cast<double>(taken + 1), 1);
  for (int64_t group = 0; group < groups; ++group)
    if (targets_of(call, group) > 0)
      kernels().update.adamw(factors, {group * width, (group + 1) * width}, call.in.offset.as<float>(),
                             work.gradient.as<float>(), call.in.m.as<float>(), call.in.v.as<float>());
}

}  // namespace

void forward(const OffsetFit& op, const Forward<OffsetFit>& call) {
  const auto put_shift = [&] { product(*call.queue, times_transposed(call.in.offset, call.in.table, call.out.shift)); };
  put_shift();
  for (int64_t k = 0; k < op.steps; ++k) {
    step(op, call, workspace_of(call), *call.in.taken.as<int32_t>() + k);
    put_shift();
  }
}

}  // namespace fairway::cpu
