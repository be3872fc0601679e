#include "score/learner.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/tape.h"
#include "score/windowed.h"

namespace fairway {

// One program of `rows` sequences with its backward pass.
class ChunkLearner::Pass {
 public:
  Pass(const ScoredModel& model, const ParamStore& params, int64_t rows, int64_t length, bool documents, Executor& executor)
      : rows_(rows), length_(length), bos_(static_cast<int32_t>(model.recipe.model.bos)), executor_(&executor) {
    const Spec indices{{rows * length}, DType::i32};
    const Spec rope{rope_shape(model.recipe, length), DType::f32};
    io_ = std::make_unique<Arena>("ttt inputs", 3 * align_up(indices.bytes()) + align_up(rope.bytes()) + 1024);
    inputs_.tokens = io_->make("tokens", indices);
    inputs_.targets = io_->make("targets", indices);
    if (documents) inputs_.segment_start = io_->make("segment_start", indices);
    inputs_.rope = io_->make("rope", rope);
    inputs_.loss_gradient = io_->make("loss gradient", {{1}, DType::f32});
    inputs_.row_length = length;
    fill_rope(model.recipe, inputs_.rope);
    Tape tape;
    const ModelOutputs outputs = build_model(tape, model.recipe, params, inputs_, model.stage);
    program_ = std::make_unique<BoundProgram>(
        std::move(tape).finish(outputs.loss, tape.input("loss gradient", inputs_.loss_gradient)));
  }

  int64_t rows() const { return rows_; }

  // Adds share·d(mean loss) to the gradients. A sequence shorter than L is repeated.
  void run(std::span<const Sequence> sequences, double share) {
    for (int64_t row = 0; row < rows_; ++row) {
      const Sequence& sequence = sequences[static_cast<size_t>(row)];
      auto begin = static_cast<int32_t>(row * length_);
      for (int64_t j = 0; j < length_; ++j) {
        const int64_t at = row * length_ + j;
        const size_t from = static_cast<size_t>(j) % sequence.inputs.size();
        inputs_.tokens.as<int32_t>()[at] = sequence.inputs[from];
        inputs_.targets.as<int32_t>()[at] = sequence.targets[from];
        if (!inputs_.segment_start) continue;
        if (sequence.inputs[from] == bos_) begin = static_cast<int32_t>(at);
        inputs_.segment_start.as<int32_t>()[at] = begin;
      }
    }
    *inputs_.loss_gradient.as<float>() = static_cast<float>(share);
    executor_->run(*program_);
  }

 private:
  int64_t rows_, length_;
  int32_t bos_;
  Executor* executor_;
  std::unique_ptr<Arena> io_;
  ModelInputs inputs_;
  std::unique_ptr<BoundProgram> program_;
};

ChunkLearner::ChunkLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
                           const ScoreContext& context)
    : ttt_(score.ttt),
      length_(score.context),
      sgd_(*params, trainable_ranges(*params, model.recipe.model, score.ttt.frozen_blocks, score.ttt.freeze_semantics),
           score.ttt.momentum, score.ttt.clip, *context.pool) {
  // How sequences are grouped must not depend on how many windows are scored at once.
  constexpr int64_t kTokensAtOnce = 4096;
  const int64_t rows = std::clamp<int64_t>(kTokensAtOnce / length_, 1, ttt_.batch);
  one_ = std::make_unique<Pass>(model, *params, 1, length_, score.documents, *context.executor);
  if (rows > 1) many_ = std::make_unique<Pass>(model, *params, rows, length_, score.documents, *context.executor);
}

ChunkLearner::~ChunkLearner() = default;

void ChunkLearner::step(std::span<const Sequence> batch, double learning_rate) {
  sgd_.clear_gradients();
  const auto count = static_cast<double>(batch.size());
  while (!batch.empty()) {
    Pass& pass = many_ && static_cast<int64_t>(batch.size()) >= many_->rows() ? *many_ : *one_;
    const auto rows = static_cast<size_t>(pass.rows());
    pass.run(batch.first(rows), static_cast<double>(rows) / count);
    batch = batch.subspan(rows);
  }
  sgd_.step(learning_rate);
}

void ChunkLearner::learn(const ScoredTokens& tokens, double learning_rate) {
  std::vector<Sequence> sequences;
  const auto length = static_cast<size_t>(length_);
  for (size_t at = 0; at + length <= tokens.inputs().size(); at += length)
    sequences.push_back({tokens.inputs().subspan(at, length), tokens.targets().subspan(at, length)});
  const auto batch = static_cast<size_t>(ttt_.batch);
  for (int64_t epoch = 0; epoch < ttt_.epochs; ++epoch)
    for (size_t at = 0; at < sequences.size(); at += batch)
      step(std::span(sequences).subspan(at, std::min(batch, sequences.size() - at)), learning_rate);
}

void ChunkLearner::learn_documents(std::span<const ScoredTokens> documents, double learning_rate) {
  std::vector<Sequence> sequences;
  for (const ScoredTokens& document : documents) sequences.push_back({document.inputs(), document.targets()});
  step(sequences, learning_rate);
}

double ChunkLearner::seconds_per_sequence() {
  const std::vector<uint16_t> tokens(static_cast<size_t>(length_), 0);
  const Sequence sequence{tokens, tokens};
  Pass& pass = many_ ? *many_ : *one_;
  const std::vector<Sequence> batch(static_cast<size_t>(pass.rows()), sequence);
  pass.run(batch, 0);  // the first run allocates
  return seconds_of([&] { pass.run(batch, 0); }) / static_cast<double>(pass.rows());
}

double cosine_rate(double lr, int64_t chunk, int64_t chunks) {
  if (chunks < 2) return lr;
  return lr * 0.5 * (1 + std::cos(std::numbers::pi * static_cast<double>(chunk) / static_cast<double>(chunks - 1)));
}

}  // namespace fairway
