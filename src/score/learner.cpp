#include "score/learner.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/tape.h"
#include "score/windowed.h"

namespace fairway {

// Passes over several sequences and over one; a group's sequences are worked through by these in order.
struct ChunkLearner::Group {
  std::unique_ptr<LearningPass> many, one;
  std::unique_ptr<BoundProgram> zero;
};

// What works through neighbouring groups: its activations and, beside others, an executor of its own.
struct ChunkLearner::Lane {
  size_t begin = 0, end = 0;  // groups
  std::unique_ptr<Arena> activations;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Executor> executor;
};

ChunkLearner::ChunkLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
                           const ScoreContext& context)
    : ttt_(score.ttt),
      length_(score.context),
      context_(context),
      sum_(params->flat_grads().numel(), *context.comm, *context.executor),
      trainable_(trainable_ranges(*params, model.recipe.model, ttt_.frozen_blocks, ttt_.freeze_semantics)),
      sgd_(*params, sum_.total(), trainable_, {ttt_.momentum, ttt_.clip}, *context.executor) {
  make_groups(model, *params, score.documents);
  make_lanes();
}

ChunkLearner::~ChunkLearner() = default;

void ChunkLearner::make_groups(const ScoredModel& model, const ParamStore& params, bool documents) {
  // How sequences are grouped must not depend on how many windows are scored at once.
  constexpr int64_t kTokensAtOnce = 4096;
  const int64_t whole = (ttt_.batch + GradientSum::kGroups - 1) / GradientSum::kGroups;
  const int64_t rows = std::clamp<int64_t>(kTokensAtOnce / length_, 1, whole);
  for (int64_t i = 0; i < sum_.groups(); ++i) {
    Group& group = groups_.emplace_back();
    const Tensor gradient = sum_.gradient(i);
    const auto pass = [&](int64_t count) {
      return std::make_unique<LearningPass>(model, params, LearningPass::Shape{count, length_, documents}, gradient,
                                            trainable_);
    };
    group.one = pass(1);
    if (rows > 1) group.many = pass(rows);
    Tape zero;
    zero.call(Fill{}, {zero.input("gradients", gradient)});
    group.zero = std::make_unique<BoundProgram>(std::move(zero).finish());
  }
}

// On the CPU as many lanes as threads, if their activations fit into a few GiB; a device has one queue.
void ChunkLearner::make_lanes() {
  constexpr size_t kMostBytes = size_t{4} << 30;
  if (groups_.empty()) return;
  const auto bytes_of = [](const std::unique_ptr<LearningPass>& pass) { return pass ? pass->activation_bytes() : 0; };
  const size_t bytes = std::max(bytes_of(groups_.front().one), bytes_of(groups_.front().many));
  const auto threads = static_cast<size_t>(context_.pool->threads());
  const bool on_device = context_.executor->stream() != nullptr;
  const size_t count = on_device ? 1 : std::clamp<size_t>(kMostBytes / bytes, 1, std::min(threads, groups_.size()));
  for (size_t i = 0; i < count; ++i) {
    Lane& lane = lanes_.emplace_back();
    lane.begin = groups_.size() * i / count;
    lane.end = groups_.size() * (i + 1) / count;
    lane.activations = std::make_unique<Arena>("learning", bytes);
    for (size_t group = lane.begin; group < lane.end; ++group) {
      groups_[group].one->bind(*lane.activations);
      if (groups_[group].many) groups_[group].many->bind(*lane.activations);
    }
    if (count == 1) break;
    lane.queue = std::make_unique<Queue>(static_cast<int>(threads / count));
    lane.executor = make_executor(context_.executor->backend(), *lane.queue);
  }
}

void ChunkLearner::run_group(size_t at, std::span<const LearningSequence> batch, Executor& executor) {
  Group& group = groups_[at];
  const GroupRange range = group_range(batch.size(), sum_.first_group() + static_cast<int64_t>(at));
  executor.run(*group.zero);
  for (auto own = batch.subspan(range.begin, range.count()); !own.empty();) {
    LearningPass& pass = group.many && static_cast<int64_t>(own.size()) >= group.many->rows() ? *group.many : *group.one;
    const auto rows = static_cast<size_t>(pass.rows());
    pass.run(own.first(rows), static_cast<double>(rows) / static_cast<double>(batch.size()), executor);
    own = own.subspan(rows);
  }
}

int64_t ChunkLearner::add_gradients(std::span<const LearningSequence> batch) {
  size_t own = 0, busy = 0;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const size_t count = group_range(batch.size(), sum_.first_group() + static_cast<int64_t>(i)).count();
    own += count;
    busy += count > 0 ? 1 : 0;
  }
  if (lanes_.size() > 1 && busy >= lanes_.size()) {
    context_.pool->parallel_for(static_cast<int64_t>(lanes_.size()), [&](int64_t i) {
      const Lane& lane = lanes_[static_cast<size_t>(i)];
      for (size_t group = lane.begin; group < lane.end; ++group) run_group(group, batch, *lane.executor);
    });
  } else {
    for (size_t group = 0; group < groups_.size(); ++group) run_group(group, batch, *context_.executor);
  }
  return static_cast<int64_t>(own);
}

int64_t ChunkLearner::step(std::span<const LearningSequence> batch, double learning_rate) {
  const int64_t own = add_gradients(batch);
  sum_.reduce();
  sgd_.step(learning_rate);
  return own;
}

int64_t ChunkLearner::learn(const ScoredTokens& tokens, double learning_rate) {
  std::vector<LearningSequence> sequences;
  const auto length = static_cast<size_t>(length_);
  for (size_t at = 0; at + length <= tokens.inputs().size(); at += length)
    sequences.push_back({tokens.inputs().subspan(at, length), tokens.targets().subspan(at, length)});
  const auto batch = static_cast<size_t>(ttt_.batch);
  int64_t own = 0;
  for (int64_t epoch = 0; epoch < ttt_.epochs; ++epoch)
    for (size_t at = 0; at < sequences.size(); at += batch)
      own += step(std::span(sequences).subspan(at, std::min(batch, sequences.size() - at)), learning_rate);
  context_.executor->wait();
  return own * length_;
}

void ChunkLearner::learn_documents(std::span<const ScoredTokens> documents, double learning_rate) {
  std::vector<LearningSequence> sequences;
  for (const ScoredTokens& document : documents) sequences.push_back({document.inputs(), document.targets()});
  step(sequences, learning_rate);
}

// One pass of every lane.
double ChunkLearner::seconds_per_sequence() {
  FAIRWAY_ASSERT(!lanes_.empty(), "a rank without sequences cannot tell their time");
  const std::vector<uint16_t> tokens(static_cast<size_t>(length_), 0);
  const auto pass_of = [&](const Lane& lane) -> LearningPass& {
    return groups_[lane.begin].many ? *groups_[lane.begin].many : *groups_[lane.begin].one;
  };
  const int64_t rows = pass_of(lanes_.front()).rows();
  const std::vector<LearningSequence> batch(static_cast<size_t>(rows), LearningSequence{tokens, tokens});
  const auto run = [&] {
    context_.pool->parallel_for(static_cast<int64_t>(lanes_.size()), [&](int64_t i) {
      const Lane& lane = lanes_[static_cast<size_t>(i)];
      pass_of(lane).run(batch, 0, lane.executor ? *lane.executor : *context_.executor);
    });
    context_.executor->wait();
  };
  run();  // the first run allocates
  return seconds_of(run) / static_cast<double>(rows * static_cast<int64_t>(lanes_.size()));
}

double cosine_rate(double lr, int64_t chunk, int64_t chunks) {
  if (chunks < 2) return lr;
  return lr * 0.5 * (1 + std::cos(std::numbers::pi * static_cast<double>(chunk) / static_cast<double>(chunks - 1)));
}

}  // namespace fairway
