#include "score/learner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>

#include "autograd/tape.h"
#include "backends/backends.h"
#include "score/windowed.h"

namespace fairway {

// Passes over several sequences and over one; a group's sequences are worked through by these in order.
struct ChunkLearner::Group {
  std::unique_ptr<LearningPass> many, one;
  Tensor gradient;
  std::map<const Executor*, std::unique_ptr<Session>> zero;  // one for each that works on it
  std::unique_ptr<Arena> activations;  // its own where it can be prepared, else those of its lane's first group

  size_t activation_bytes() const { return std::max(one->activation_bytes(), many ? many->activation_bytes() : 0); }
  void bind(Arena& arena) const {
    one->bind(arena);
    if (many) many->bind(arena);
  }
  void clear(Executor& executor) {
    std::unique_ptr<Session>& session = zero[&executor];
    if (!session) {
      Tape tape;
      tape.call(Fill{}, {tape.input("gradients", gradient)});
      session = executor.open(std::move(tape).finish());
    }
    session->run();
  }
};

// What works through neighbouring groups; beside others, with an executor of its own.
struct ChunkLearner::Lane {
  size_t begin = 0, end = 0;  // groups
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
  can_prepare_ = !context.executor->on_device() && context.comm->size() == 1;
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
    group.gradient = sum_.gradient(i);
    const auto pass = [&](int64_t count) {
      return std::make_unique<LearningPass>(model, params, LearningPass::Shape{count, length_, documents, can_prepare_},
                                            group.gradient, trainable_);
    };
    group.one = pass(1);
    if (rows > 1) group.many = pass(rows);
  }
}

// On the CPU as many lanes as threads, if their activations fit into a few GiB; a device has one queue.
void ChunkLearner::make_lanes() {
  constexpr size_t kMostBytes = size_t{4} << 30;
  if (groups_.empty()) return;
  const size_t bytes = groups_.front().activation_bytes(), fit = kMostBytes / bytes;
  const auto threads = static_cast<size_t>(context_.pool->threads());
  const bool on_device = context_.executor->on_device();
  can_prepare_ &= fit >= groups_.size();
  const size_t count = on_device ? 1 : std::clamp<size_t>(fit, 1, std::min(threads, groups_.size()));
  for (size_t i = 0; i < count; ++i) {
    Lane& lane = lanes_.emplace_back();
    lane.begin = groups_.size() * i / count;
    lane.end = groups_.size() * (i + 1) / count;
    for (size_t group = lane.begin; group < lane.end; ++group) {
      if (can_prepare_ || group == lane.begin) groups_[group].activations = std::make_unique<Arena>("learning", bytes);
      groups_[group].bind(*groups_[can_prepare_ ? group : lane.begin].activations);
    }
    if (count == 1) break;
    lane.queue = std::make_unique<Queue>(static_cast<int>(threads / count));
    lane.executor = make_executor(context_.executor->backend(), *lane.queue);
  }
}

size_t ChunkLearner::sequences_in(size_t group, size_t batch) const {
  return group_range(batch, sum_.first_group() + static_cast<int64_t>(group)).count();
}

LearningPass* ChunkLearner::only_pass(size_t at, size_t batch) const {
  const Group& group = groups_[at];
  const size_t count = sequences_in(at, batch);
  if (count == 1) return group.one.get();
  return group.many && count == static_cast<size_t>(group.many->rows()) ? group.many.get() : nullptr;
}

void ChunkLearner::run_group(size_t at, std::span<const LearningSequence> batch, Executor& executor) {
  Group& group = groups_[at];
  const GroupRange range = group_range(batch.size(), sum_.first_group() + static_cast<int64_t>(at));
  const auto share_of = [&](size_t rows) { return static_cast<double>(rows) / static_cast<double>(batch.size()); };
  group.clear(executor);
  auto own = batch.subspan(range.begin, range.count());
  if (!prepared_.empty()) {
    if (!own.empty()) only_pass(at, batch.size())->backward(share_of(own.size()), executor);
    return;
  }
  while (!own.empty()) {
    LearningPass& pass = group.many && static_cast<int64_t>(own.size()) >= group.many->rows() ? *group.many : *group.one;
    const auto rows = static_cast<size_t>(pass.rows());
    pass.run(own.first(rows), share_of(rows), executor);
    own = own.subspan(rows);
  }
}

// Each lane's groups on a thread of its own, unless too few groups have something to do. Groups with activations of their own
// go to the lane that is free.
void ChunkLearner::over_groups(size_t batch, const std::function<void(size_t group, Executor&)>& work) {
  size_t busy = 0;
  for (size_t group = 0; group < groups_.size(); ++group) busy += sequences_in(group, batch) > 0 ? 1 : 0;
  if (lanes_.size() > 1 && busy >= lanes_.size()) {
    std::atomic<size_t> next = 0;
    context_.pool->parallel_for(static_cast<int64_t>(lanes_.size()), [&](int64_t i) {
      const Lane& lane = lanes_[static_cast<size_t>(i)];
      for (size_t group = lane.begin; group < lane.end && !can_prepare_; ++group) work(group, *lane.executor);
      for (size_t group; can_prepare_ && (group = next++) < groups_.size();) work(group, *lane.executor);
    });
  } else {
    for (size_t group = 0; group < groups_.size(); ++group) work(group, *context_.executor);
  }
}

int64_t ChunkLearner::add_gradients(std::span<const LearningSequence> batch) {
  over_groups(batch.size(), [&](size_t group, Executor& executor) { run_group(group, batch, executor); });
  size_t own = 0;
  for (size_t group = 0; group < groups_.size(); ++group) own += sequences_in(group, batch.size());
  return static_cast<int64_t>(own);
}

int64_t ChunkLearner::prepare(std::span<const uint16_t> tokens) {
  prepared_ = {};
  if (!can_prepare_) return 0;
  std::vector<LearningSequence> batch = sequences_of(tokens.first(tokens.size() - 1), tokens.subspan(1));
  batch.resize(std::min(batch.size(), static_cast<size_t>(ttt_.batch)));
  const auto fits = [&](size_t group) { return sequences_in(group, batch.size()) == 0 || only_pass(group, batch.size()); };
  for (size_t group = 0; group < groups_.size(); ++group)
    if (!fits(group)) return 0;
  over_groups(batch.size(), [&](size_t group, Executor& executor) {
    const GroupRange range = group_range(batch.size(), static_cast<int64_t>(group));
    const auto own = std::span<const LearningSequence>(batch).subspan(range.begin, range.count());
    if (!own.empty()) only_pass(group, batch.size())->forward(own, executor);
  });
  prepared_ = tokens.first(batch.size() * static_cast<size_t>(length_));
  return static_cast<int64_t>(batch.size());
}

std::pair<const LearningPass*, int64_t> ChunkLearner::place_of(int64_t sequence, int64_t position) const {
  const size_t batch = prepared_.size() / static_cast<size_t>(length_);
  for (size_t group = 0; group < groups_.size(); ++group) {
    const GroupRange range = group_range(batch, static_cast<int64_t>(group));
    const int64_t row = sequence - static_cast<int64_t>(range.begin);
    if (row < static_cast<int64_t>(range.count())) return {only_pass(group, batch), row * length_ + position};
  }
  FAIRWAY_ASSERT(false, "a sequence that was not prepared");
}

Distribution ChunkLearner::distribution(int64_t sequence, int64_t position) const {
  const auto [pass, row] = place_of(sequence, position);
  return pass->distribution(row);
}

double ChunkLearner::nll(int64_t sequence, int64_t position) const {
  const auto [pass, row] = place_of(sequence, position);
  return pass->nll(row);
}

int64_t ChunkLearner::step(std::span<const LearningSequence> batch, double learning_rate) {
  const int64_t own = add_gradients(batch);
  prepared_ = {};
  sum_.reduce();
  sgd_.step(learning_rate);
  return own;
}

std::vector<LearningSequence> ChunkLearner::sequences_of(std::span<const uint16_t> inputs,
                                                         std::span<const uint16_t> targets) const {
  std::vector<LearningSequence> sequences;
  const auto length = static_cast<size_t>(length_);
  for (size_t at = 0; at + length <= inputs.size(); at += length)
    sequences.push_back({inputs.subspan(at, length), targets.subspan(at, length)});
  return sequences;
}

int64_t ChunkLearner::learn(const ScoredTokens& tokens, double learning_rate) {
  FAIRWAY_ASSERT(prepared_.empty() || prepared_.data() == tokens.inputs().data(), "another chunk was prepared");
  const std::vector<LearningSequence> sequences = sequences_of(tokens.inputs(), tokens.targets());
  const auto batch = static_cast<size_t>(ttt_.batch);
  int64_t own = 0;
  for (int64_t epoch = 0; epoch < ttt_.epochs; ++epoch)
    for (size_t at = 0; at < sequences.size(); at += batch)
      own += step(std::span(sequences).subspan(at, std::min(batch, sequences.size() - at)), learning_rate);
  context_.executor->wait();
  return own * length_;
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
