#include "score/adapter_learner.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/tape.h"
#include "base/rng.h"

namespace fairway {
namespace {

constexpr int64_t kShortestRow = 64;

Tensor filled(Arena& arena, const char* name, int64_t count, double value) {
  const Tensor out = arena.make(name, {{count}, DType::f32});
  std::fill_n(out.as<float>(), count, static_cast<float>(value));
  return out;
}

}  // namespace

// Programs over one row of fixed length, with and without the backward pass; the shorter one serves chunks nobody learns from.
class AdapterLearner::Pass {
 public:
  Pass(const ScoredModel& model, const ParamStore& params, const AdapterInputs& adapters, int64_t length, int64_t chunk,
       Executor& executor)
      : length_(length), chunk_(chunk), executor_(&executor) {
    const Spec rows{{length}, DType::i32}, head{{chunk}, DType::i32}, rope{rope_shape(model.recipe, length), DType::f32};
    io_ = std::make_unique<Arena>("adapter inputs",
                                  align_up(rows.bytes()) + 2 * align_up(head.bytes()) + align_up(rope.bytes()) + 1024);
    inputs_.tokens = io_->make("tokens", rows);
    inputs_.targets = io_->make("targets", head);
    inputs_.head_rows = io_->make("head_rows", head);
    inputs_.rope = io_->make("rope", rope);
    inputs_.loss_gradient = io_->make("loss gradient", {{1}, DType::f32});
    *inputs_.loss_gradient.as<float>() = 1.0f;
    inputs_.row_length = length;
    inputs_.adapters = &adapters;
    fill_rope(model.recipe, inputs_.rope);
    for (const bool backward : {false, true}) {
      Tape tape;
      ModelOutputs& outputs = outputs_[backward ? 1 : 0];
      outputs = build_model(tape, model.recipe, params, inputs_, model.stage);
      tape.keep(outputs.logits);
      tape.keep(outputs.lse);
      const Var gradient = backward ? tape.input("loss gradient", inputs_.loss_gradient) : Var{};
      sessions_[backward ? 1 : 0] =
          executor.open(backward ? std::move(tape).finish(outputs.loss, gradient) : std::move(tape).finish());
    }
  }

  void run(std::span<const uint16_t> window, std::span<const uint16_t> targets, bool backward) {
    const auto count = static_cast<int64_t>(window.size()), scored = static_cast<int64_t>(targets.size());
    for (int64_t j = 0; j < length_; ++j)  // causal: what pads the row is not seen
      inputs_.tokens.as<int32_t>()[j] = j < count ? window[static_cast<size_t>(j)] : 0;
    for (int64_t j = 0; j < chunk_; ++j) {
      const int64_t at = std::min(j, scored - 1);
      inputs_.head_rows.as<int32_t>()[j] = static_cast<int32_t>(count - scored + at);
      inputs_.targets.as<int32_t>()[j] = targets[static_cast<size_t>(at)];
    }
    ran_ = backward ? 1 : 0;
    for (const Tensor& input : {inputs_.tokens, inputs_.targets, inputs_.head_rows}) executor_->upload(input);
    sessions_[ran_]->run();
    for (const Var value : {outputs_[ran_].nll, outputs_[ran_].lse, outputs_[ran_].logits}) sessions_[ran_]->fetch(value.id);
  }
  Tensor tensor(Var ModelOutputs::*value) const { return sessions_[ran_]->fetched((outputs_[ran_].*value).id); }

 private:
  int64_t length_, chunk_;
  Executor* executor_;
  std::unique_ptr<Arena> io_;
  ModelInputs inputs_;
  std::array<ModelOutputs, 2> outputs_;
  std::array<std::unique_ptr<Session>, 2> sessions_;
  size_t ran_ = 0;
};

AdapterLearner::AdapterLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
                               const ScoreContext& context)
    : model_(model),
      lora_(score.lora),
      context_(context),
      params_(params),
      longest_(std::max(score.context, score.lora.chunk)),
      adapters_(adapter_table(model.recipe.model, score.lora.sites, model.stage.looped, score.lora.rank),
                ParamStore::Gradients::kept),
      state_("adapters", 3 * align_up(adapters_.flat_values().spec.bytes()) +
                             align_up(static_cast<size_t>(model.recipe.model.dim) * 4) +
                             align_up(static_cast<size_t>(lora_.rank) * 4) + 1024) {
  const double scale = lora_.alpha / static_cast<double>(lora_.rank);
  inputs_ = {&adapters_, filled(state_, "width scale", model.recipe.model.dim, scale),
             filled(state_, "rank scale", lora_.rank, scale), lora_.sites};
  scalars_ = state_.make("step scalars", {{kStepScalars}, DType::f64});
  scalars_.as<double>()[static_cast<size_t>(StepScalar::learning_rate_scale)] = 1;
  draw();
  record_update();
}

AdapterLearner::~AdapterLearner() = default;

void AdapterLearner::draw() {
  for (const ParamBank& bank : adapters_.banks()) {  // every A has D inputs
    if (bank.info.adapter->factor != AdapterFactor::a) continue;
    Rng rng(1, std::hash<std::string>{}(bank.info.name));
    const double bound = 1 / std::sqrt(static_cast<double>(model_.recipe.model.dim));
    for (int64_t i = 0; i < bank.value.numel(); ++i)
      bank.value.as<float>()[i] = static_cast<float>(bound * (2 * rng.uniform01() - 1));
  }
}

void AdapterLearner::record_update() {
  const Tensor values = adapters_.flat_values(), gradients = adapters_.flat_grads();
  const Tensor drawn = state_.make("drawn", values.spec), first = state_.make("m", values.spec),
               second = state_.make("v", values.spec);
  std::memcpy(drawn.data, values.data, values.spec.bytes());
  const auto bound = [&](Tape& tape) { return context_.executor->open(std::move(tape).finish()); };
  for (const Start start : {Start::cold, Start::warm}) {
    Tape tape;
    tape.scope("new adapters");
    for (const ParamBank& bank : adapters_.banks()) {
      if (start == Start::warm && bank.info.adapter->factor == AdapterFactor::a) continue;
      const Tensor from = drawn.part(bank.offset, bank.value.spec.shape);
      tape.call(AccumulateScaled{.overwrite = true}, {tape.input("adapter", bank.value), tape.input("drawn", from), Var{}});
    }
    for (const Tensor& moment : {first, second}) tape.call(Fill{}, {tape.input("moment", moment)});
    begin_[static_cast<size_t>(start)] = bound(tape);
  }
  Tape zero, update;
  zero.call(Fill{}, {zero.input("gradients", gradients)});
  zero_ = bound(zero);
  update.scope("AdamW of adapters");
  update.call(
      AdamWUpdate{
          .learning_rate = lora_.lr, .weight_decay = lora_.wd, .beta1 = lora_.beta1, .beta2 = lora_.beta2, .eps = lora_.eps},
      {update.input("adapters", values), update.input("gradients", gradients), update.input("m", first),
       update.input("v", second), Var{}, update.input("step scalars", scalars_)});
  update_ = bound(update);
}

void AdapterLearner::begin_document(Start start) {
  begin_[static_cast<size_t>(start)]->run();
  steps_ = 0;
  chunk_ready_ = 0;
}

AdapterLearner::Pass& AdapterLearner::pass_for(int64_t count) {
  int64_t length = std::max(kShortestRow, lora_.chunk);
  while (length < count) length *= 2;
  length = std::max(std::min(length, longest_), count);
  std::unique_ptr<Pass>& pass = passes_[length];
  if (!pass) pass = std::make_unique<Pass>(model_, *params_, inputs_, length, lora_.chunk, *context_.executor);
  return *pass;
}

void AdapterLearner::run(std::span<const uint16_t> window, std::span<const uint16_t> targets, int64_t length, bool gradients) {
  if (gradients) zero_->run();
  last_ = &pass_for(length);
  last_->run(window, targets, gradients);
  chunk_ready_ = gradients ? static_cast<int64_t>(targets.size()) : 0;
}

Distribution AdapterLearner::distribution(int64_t row) const {
  const Tensor logits = last_->tensor(&ModelOutputs::logits).slice(row);
  return {{logits.as<float>(), static_cast<size_t>(logits.numel())}, last_->tensor(&ModelOutputs::lse).as<float>()[row], {}};
}

double AdapterLearner::nll(int64_t row) const {
  return static_cast<double>(last_->tensor(&ModelOutputs::nll).as<float>()[row]);
}

void AdapterLearner::learn(const ScoredTokens& chunk) {
  FAIRWAY_ASSERT(chunk.count() == chunk_ready_, "gradients of another chunk than the one that was scored");
  scalars_.as<double>()[static_cast<size_t>(StepScalar::adam_step)] = static_cast<double>(++steps_);
  context_.executor->upload(scalars_);
  update_->run();
  chunk_ready_ = 0;
}

}  // namespace fairway
