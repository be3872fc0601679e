#include "optim/optimizer.h"

#include <bit>
#include <cstring>

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

}  // namespace

int64_t emulated_share(int64_t world, int64_t processes) {
  if (world % processes == 0 && (processes == 1 || std::has_single_bit(static_cast<uint64_t>(world / processes))))
    return world / processes;
  std::string fitting;
  for (int64_t n = 1; n <= world; ++n) {
    if (n == 1 || (world % n == 0 && std::has_single_bit(static_cast<uint64_t>(world / n))))
      fitting += (fitting.empty() ? "" : ", ") + std::to_string(n);
  }
  throw InputError(std::to_string(processes) + " processes cannot share train.emulated_world = " + std::to_string(world) +
                   " ranks evenly in powers of two; start " + fitting + " of them");
}

Optimizer::Optimizer(const Recipe& recipe, const ParamStore& params, Executor& executor, Communicator& comm, Start start)
    : params_(&params),
      executor_(&executor),
      comm_(&comm),
      world_(recipe.train.emulated_world),
      local_ranks_(emulated_share(world_, comm.size())),
      clip_norm_(recipe.optim.clip),
      state_("optimizer", comm.root() ? state_bytes(params) : 0),
      work_("optimizer work", 1024) {
  scalars_ = work_.make("step scalars", {{kStepScalars}, DType::f64});
  totals_ = work_.make("squared norm", {{1}, DType::f64});
  clip_ = work_.make("clip", {{2}, DType::f64});
  make_state();
  Tape zero;
  zero.scope("zero gradients");
  zero.call(Fill{}, {zero.input("gradients", params.flat_grads())});
  zero_ = executor.open(std::move(zero).finish());
  clip_session_ = executor.open(record_clip());
  MeanTree::Leaf leaf{.clip = clip_, .factor = 1.0 / static_cast<double>(world_)};
  layout_ = gradient_layout(recipe, params, comm.size());
  leaf.elements = layout_.elements;
  leaf.rounded = layout_.rounded;
  // A gradient is rounded once, when its clip is known; until then it does not set out.
  const bool early = comm.shares_updates() && start == Start::early && local_ranks_ == 1 && leaf.rounded == 0;
  for (const ShardedBank& bank : layout_.matrices) {
    if (!early) leaf.sources.push_back({bank.bank->grad, bank.offset});
  }
  for (const Place& place : layout_.replicated) leaf.sources.push_back({place.bank->grad, place.offset});
  if (comm.shares_updates() || world_ > 1 || leaf.rounded > 0) mean_ = std::make_unique<MeanTree>(leaf, local_ranks_, executor);
  if (!comm.shares_updates()) {
    update_ = executor.open(record_update(recipe));
    return;
  }
  const ShardedUpdate::Gradients gradients{mean_->mean(), early ? clip_ : Tensor{}, leaf.factor};
  sharded_ = std::make_unique<ShardedUpdate>(recipe, layout_, gradients, executor, comm, UpdateInputs{scalars_, {}});
}

void Optimizer::make_state() {
  for (const ParamBank& bank : params_->banks()) {
    const std::string& name = bank.info.name;
    StatePart part{&bank, {}, {}};
    if (comm_->root() && bank.info.role == ParamRole::matrix) {
      part.first = state_.make("momentum " + name, bank.value.spec);
    } else if (comm_->root()) {
      part.first = state_.make("m " + name, bank.value.spec);
      part.second = state_.make("v " + name, bank.value.spec);
    }
    parts_.push_back(part);
  }
  flat_state_ = state_.all(DType::f32);
}

Recording Optimizer::record_clip() {
  Tape tape;
  tape.scope("clip");
  const Var totals = tape.input("squared norm", totals_);
  tape.call(SumSquares{.slot = 0}, {tape.input("gradients", params_->flat_grads()), totals});
  clip_value_ = tape.input("clip", clip_);
  tape.call(ClipCoefficient{.max_norm = clip_norm_}, {totals, clip_value_});
  return std::move(tape).finish();
}

Recording Optimizer::record_update(const Recipe& recipe) {
  Tape tape;
  const UpdateInputs inputs{scalars_, mean_ ? Tensor{} : clip_};
  std::map<int32_t, int64_t> offsets;  // in the mean, by the bank's number
  for (const Place& place : layout_.matrices) offsets[place.bank->number] = place.offset;
  for (const Place& place : layout_.replicated) offsets[place.bank->number] = place.offset;
  for (const StatePart& part : parts_) {
    const ParamBank& bank = *part.bank;
    const std::string& name = bank.info.name;
    tape.scope(name);
    const Tensor grad = mean_ ? mean_->mean().part(offsets[bank.number], bank.grad.spec.shape) : bank.grad;
    if (bank.info.role == ParamRole::matrix) {
      const Shape shape = matrices_of(bank, recipe.optim.matrix.projection_slices);
      const Var update = record_muon_update(tape, recipe.optim, name, grad.reshaped(shape), part.first.reshaped(shape), inputs);
      if (layout_.sent == DType::bf16) record_rounding(tape, update);  // as if it had travelled
      record_muon_apply(tape, recipe.optim.matrix, name, bank.value.reshaped(shape), update, inputs);
    } else {
      record_adamw(tape, recipe.optim, bank, grad, {part.first, part.second}, inputs);
    }
  }
  return std::move(tape).finish();
}

void Optimizer::begin_rank() { zero_->run(); }

void Optimizer::run_last(Session& passes) {
  if (sharded_)
    sharded_->run_last(passes);
  else
    passes.run();
}

void Optimizer::end_rank(int64_t rank) {
  clip_session_->run();
  if (mean_) mean_->add(rank);
}

void Optimizer::update(const StepNumbers& numbers) {
  double* slots = scalars_.as<double>();
  slots[static_cast<size_t>(StepScalar::learning_rate_scale)] = numbers.learning_rate_scale;
  slots[static_cast<size_t>(StepScalar::momentum)] = numbers.momentum;
  slots[static_cast<size_t>(StepScalar::adam_step)] = static_cast<double>(numbers.step);
  executor_->upload(scalars_);
  if (sharded_)
    sharded_->run();
  else
    update_->run();
}

void Optimizer::gather_state() {
  if (!sharded_) return;
  for (const StatePart& part : parts_) {
    if (part.bank->info.role == ParamRole::matrix) {
      sharded_->gather_momentum(*part.bank, part.first);
    } else if (comm_->root()) {
      const AdamState& state = sharded_->adam(*part.bank);
      executor_->download(state.m);
      executor_->download(state.v);
      std::memcpy(part.first.data, state.m.data, state.m.spec.bytes());
      std::memcpy(part.second.data, state.v.data, state.v.spec.bytes());
    }
  }
}

void Optimizer::share_state() {
  if (!sharded_) return;
  for (const StatePart& part : parts_) {
    if (part.bank->info.role == ParamRole::matrix) {
      sharded_->take_momentum(*part.bank, part.first);
      continue;
    }
    const AdamState& state = sharded_->adam(*part.bank);
    if (comm_->root()) {
      std::memcpy(state.m.data, part.first.data, state.m.spec.bytes());
      std::memcpy(state.v.data, part.second.data, state.v.spec.bytes());
    }
    comm_->broadcast(state.m);
    comm_->broadcast(state.v);
    executor_->upload(state.m);
    executor_->upload(state.v);
  }
}

double Optimizer::gradient_norm() const {
  executor_->download(clip_);
  return clip_.as<double>()[1];
}

}  // namespace fairway
