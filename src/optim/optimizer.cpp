#include "optim/optimizer.h"

#include "autograd/tape.h"
#include "base/error.h"

namespace fairway {
namespace {

size_t state_bytes(const ParamStore& params) {
  size_t bytes = 0;
  for (const ParamBank& bank : params.banks()) {
    bytes += align_up(bank.value.spec.bytes()) * (bank.info.role == ParamRole::matrix ? 1 : 2);
  }
  return bytes;
}

size_t work_bytes(const ParamStore& params, int64_t world) {
  return 1024 + (world > 1 ? align_up(params.flat_values().spec.bytes()) : 0);
}

// A bank as (n, R, C); a lone projection is cut into slices of rows, each orthogonalised by itself.
Shape bank_shape(const ParamBank& bank, int64_t slices) {
  const Shape& shape = bank.value.spec.shape;
  if (shape.rank == 3) return shape;
  if (shape[0] % slices != 0) {
    throw InputError("optim.matrix.projection_slices = " + std::to_string(slices) + " does not divide the " +
                     std::to_string(shape[0]) + " rows of " + bank.info.name);
  }
  return {slices, shape[0] / slices, shape[1]};
}

NewtonSchulz newton_schulz_of(const MatrixRecipe& rule) {
  NewtonSchulz op = newton_schulz_rule(name_of(rule.newton_schulz));
  op.aol = rule.aol;
  op.post_norm_rows = rule.post_norm != PostNorm::none;
  op.post_norm_columns = rule.post_norm == PostNorm::rows_columns;
  return op;
}

}  // namespace

Optimizer::Optimizer(const Recipe& recipe, const ParamStore& params)
    : params_(&params),
      world_(recipe.train.emulated_world),
      clip_norm_(recipe.optim.clip),
      state_("optimizer", state_bytes(params)),
      work_("optimizer work", work_bytes(params, world_)) {
  scalars_ = work_.make("step scalars", {{kStepScalars}, DType::f64});
  totals_ = work_.make("squared norm", {{1}, DType::f64});
  clip_ = work_.make("clip", {{2}, DType::f64});
  if (world_ > 1) mean_ = work_.make("mean gradient", params.flat_values().spec);
  Tape zero;
  zero.call(Fill{}, {zero.input("gradients", params.flat_grads())});
  zero_ = std::make_unique<BoundProgram>(std::move(zero).finish());
  clip_program_ = std::make_unique<BoundProgram>(record_clip());
  if (world_ > 1) {
    mean_first_ = std::make_unique<BoundProgram>(record_mean(true));
    mean_next_ = std::make_unique<BoundProgram>(record_mean(false));
  }
  update_ = std::make_unique<BoundProgram>(record_update(recipe));
  flat_state_ = make_view(state_.base(), {{static_cast<int64_t>(state_.used() / size_of(DType::f32))}, DType::f32});
}

Program Optimizer::record_clip() const {
  Tape tape;
  const Var totals = tape.input("squared norm", totals_);
  tape.call(SumSquares{.slot = 0}, {tape.input("gradients", params_->flat_grads()), totals});
  tape.call(ClipCoefficient{.max_norm = clip_norm_}, {totals, tape.input("clip", clip_)});
  return std::move(tape).finish();
}

Program Optimizer::record_mean(bool first) const {
  Tape tape;
  tape.call(AccumulateScaled{.factor = 1.0 / static_cast<double>(world_), .overwrite = first},
            {tape.input("mean gradient", mean_), tape.input("gradients", params_->flat_grads()), tape.input("clip", clip_)});
  return std::move(tape).finish();
}

void Optimizer::record_muon(Tape& tape, const MatrixRecipe& rule, const ParamBank& bank, const Tensor& grad,
                            const Tensor& buffer) {
  const std::string& name = bank.info.name;
  const Shape shape = bank_shape(bank, rule.projection_slices);
  const Var clip = world_ > 1 ? Var{} : tape.input("clip", clip_);
  const Var scalars = tape.input("scalars", scalars_);
  const Var u = tape.one(
      MuonMomentum{.row_norm = rule.row_norm},
      {tape.input("d " + name, grad.reshaped(shape)), tape.input("momentum " + name, buffer.reshaped(shape)), clip, scalars});
  const Var o = tape.one(newton_schulz_of(rule), {u});
  tape.call(MuonApply{.learning_rate = rule.lr, .weight_decay = rule.wd},
            {tape.input(name, bank.value.reshaped(shape)), o, scalars});
}

Program Optimizer::record_update(const Recipe& recipe) {
  Tape tape;
  const std::byte* grads = params_->flat_grads().data;
  for (const ParamBank& bank : params_->banks()) {
    const std::string& name = bank.info.name;
    tape.scope(name);
    Tensor grad = bank.grad;
    if (world_ > 1) grad.data = mean_.data + (bank.grad.data - grads);
    if (bank.info.role == ParamRole::matrix) {
      record_muon(tape, recipe.optim.matrix, bank, grad, state_.make("momentum " + name, bank.value.spec));
      continue;
    }
    const AdamRecipe& rule = bank.info.role == ParamRole::token ? recipe.optim.token : recipe.optim.scalar;
    const Var m = tape.input("m " + name, state_.make("m " + name, bank.value.spec));
    const Var v = tape.input("v " + name, state_.make("v " + name, bank.value.spec));
    const Var clip = world_ > 1 ? Var{} : tape.input("clip", clip_);
    tape.call(
        AdamWUpdate{
            .learning_rate = rule.lr, .weight_decay = rule.wd, .beta1 = rule.beta1, .beta2 = rule.beta2, .eps = rule.eps},
        {tape.input(name, bank.value), tape.input("d " + name, grad), m, v, clip, tape.input("scalars", scalars_)});
  }
  return std::move(tape).finish();
}

void Optimizer::begin_rank(Executor& executor) { executor.run(*zero_); }

void Optimizer::end_rank(Executor& executor, int64_t rank) {
  executor.run(*clip_program_);
  if (world_ > 1) executor.run(rank == 0 ? *mean_first_ : *mean_next_);
}

void Optimizer::update(Executor& executor, const StepNumbers& numbers) {
  double* slots = scalars_.as<double>();
  slots[static_cast<size_t>(StepScalar::learning_rate_scale)] = numbers.learning_rate_scale;
  slots[static_cast<size_t>(StepScalar::momentum)] = numbers.momentum;
  slots[static_cast<size_t>(StepScalar::adam_step)] = static_cast<double>(numbers.step);
  executor.to_device(scalars_);
  executor.run(*update_);
}

double Optimizer::gradient_norm(Executor& executor) const {
  executor.to_host(clip_);
  return clip_.as<double>()[1];
}

}  // namespace fairway
