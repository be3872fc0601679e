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
      programs_[backward ? 1 : 0] = std::make_unique<BoundProgram>(
          backward ? std::move(tape).finish(outputs.loss, tape.input("loss gradient", inputs_.loss_gradient))
                   : std::move(tape).finish());
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
    executor_->run(*programs_[ran_]);
  }
  Tensor tensor(Var ModelOutputs::*value) const { return programs_[ran_]->tensor((outputs_[ran_].*value).id); }

 private:
  int64_t length_, chunk_;
  Executor* executor_;
  std::unique_ptr<Arena> io_;
  ModelInputs inputs_;
  std::array<ModelOutputs, 2> outputs_;
  std::array<std::unique_ptr<BoundProgram>, 2> programs_;
  size_t ran_ = 0;
};

AdapterLearner::AdapterLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
                               const ScoreContext& context)
    : model_(model),
      lora_(score.lora),
      context_(context),
      params_(params),
      longest_(std::max(score.context, score.lora.chunk)),
      adapters_(adapter_table(model.recipe.model, model.stage.looped, score.lora.rank), ParamStore::Gradients::kept),
      scales_("adapter scales",
              align_up(static_cast<size_t>(model.recipe.model.dim) * 4) + align_up(static_cast<size_t>(lora_.rank) * 4) + 64) {
  const double scale = lora_.alpha / static_cast<double>(lora_.rank);
  inputs_ = {&adapters_, filled(scales_, "width scale", model.recipe.model.dim, scale),
             filled(scales_, "rank scale", lora_.rank, scale)};
  const auto count = static_cast<size_t>(adapters_.flat_values().numel());
  for (const ParamBank& bank : adapters_.banks()) {  // every A has D inputs
    if (!bank.info.name.ends_with(".a")) continue;
    Rng rng(1, std::hash<std::string>{}(bank.info.name));
    const double bound = 1 / std::sqrt(static_cast<double>(model.recipe.model.dim));
    for (int64_t i = 0; i < bank.value.numel(); ++i)
      bank.value.as<float>()[i] = static_cast<float>(bound * (2 * rng.uniform01() - 1));
  }
  drawn_.assign(adapters_.flat_values().as<float>(), adapters_.flat_values().as<float>() + count);
  first_.resize(count);
  second_.resize(count);
}

AdapterLearner::~AdapterLearner() = default;

void AdapterLearner::begin_document(Start start) {
  for (const ParamBank& bank : adapters_.banks()) {
    if (start == Start::warm && bank.info.name.ends_with(".a")) continue;
    const auto at = (bank.value.data - adapters_.flat_values().data) / static_cast<int64_t>(sizeof(float));
    std::memcpy(bank.value.data, drawn_.data() + at, bank.value.spec.bytes());
  }
  std::fill(first_.begin(), first_.end(), 0.0f);
  std::fill(second_.begin(), second_.end(), 0.0f);
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
  if (gradients) std::memset(adapters_.flat_grads().data, 0, adapters_.flat_grads().spec.bytes());
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
  ++steps_;
  const double k = static_cast<double>(steps_);
  const auto beta1 = static_cast<float>(lora_.beta1), beta2 = static_cast<float>(lora_.beta2);
  const auto correct1 = static_cast<float>(1 / (1 - std::pow(lora_.beta1, k)));
  const auto correct2 = static_cast<float>(1 / (1 - std::pow(lora_.beta2, k)));
  const auto rate = static_cast<float>(lora_.lr), keep = static_cast<float>(1 - lora_.lr * lora_.wd);
  const auto eps = static_cast<float>(lora_.eps);
  const float* gradient = adapters_.flat_grads().as<float>();
  float* value = adapters_.flat_values().as<float>();
  constexpr int64_t kPiece = 1 << 14;
  const auto count = static_cast<int64_t>(drawn_.size());
  context_.pool->parallel_for((count + kPiece - 1) / kPiece, [&](int64_t piece) {
    for (int64_t i = piece * kPiece; i < std::min(count, (piece + 1) * kPiece); ++i) {
      float &m = first_[static_cast<size_t>(i)], &v = second_[static_cast<size_t>(i)];
      m = beta1 * m + (1 - beta1) * gradient[i];
      v = beta2 * v + (1 - beta2) * gradient[i] * gradient[i];
      value[i] = keep * value[i] - rate * (m * correct1) / (std::sqrt(v * correct2) + eps);
    }
  });
  chunk_ready_ = 0;
}

}  // namespace fairway
