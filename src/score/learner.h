// The model's weights learning from scored tokens: the training program on sequences of L tokens, mean cross-entropy of a
// batch, then a step of SGD (scoring spec §2.5). Learns from nothing but what the ledger has handed out. A batch falls into
// groups (gradient_sum.h) that ranks share, and within a rank threads: a group runs on one thread from end to end where there
// are enough of them, which spares the waiting of threads for one another after every op. A chunk's first step needs the
// forward pass of sequences that are scored with the same weights just before: prepare() makes it once for both, as scoring
// does before the ledger has the chunk, and changes no weight.
#pragma once

#include <span>

#include "score/gradient_sum.h"
#include "score/learning_pass.h"

namespace fairway {

class ChunkLearner {
 public:
  ChunkLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
               const ScoreContext& context);
  ~ChunkLearner();

  void reset() { sgd_.reset(); }
  // Forward passes, without any learning, over the sequences of the first step of the chunk that is learned next: tokens
  // [0, n·L] of `tokens` are their inputs and targets. How many of them can be scored from it until then: all of the step's, or
  // none on a device, among several ranks, and where they would need too much memory or do not fill their passes.
  int64_t prepare(std::span<const uint16_t> tokens);
  Distribution distribution(int64_t sequence, int64_t position) const;  // of a prepared one
  double nll(int64_t sequence, int64_t position) const;

  // Whole sequences of the tokens in their order, `epochs` times in batches. Tokens that this rank worked through, every pass
  // counted. Collective.
  int64_t learn(const ScoredTokens& tokens, double learning_rate);
  double seconds_per_sequence();  // forward and backward by this rank, on made-up tokens

 private:
  struct Group;
  struct Lane;
  void make_groups(const ScoredModel& model, const ParamStore& params, bool documents);
  void make_lanes();
  std::vector<LearningSequence> sequences_of(std::span<const uint16_t> inputs, std::span<const uint16_t> targets) const;
  LearningPass* only_pass(size_t group, size_t batch) const;  // that does all of a group's part of a batch; null: several
  std::pair<const LearningPass*, int64_t> place_of(int64_t sequence, int64_t position) const;
  void run_group(size_t group, std::span<const LearningSequence> batch, Executor& executor);
  size_t sequences_in(size_t group, size_t batch) const;
  void over_groups(size_t batch, const std::function<void(size_t group, Executor&)>& work);
  int64_t add_gradients(std::span<const LearningSequence> batch);  // of this rank's groups; their sequences
  int64_t step(std::span<const LearningSequence> batch, double learning_rate);

  TttRecipe ttt_;
  int64_t length_;
  ScoreContext context_;
  GradientSum sum_;
  std::vector<FlatRange> trainable_;
  MaskedSgd sgd_;
  std::vector<Group> groups_;
  std::vector<Lane> lanes_;
  bool can_prepare_ = false;
  std::span<const uint16_t> prepared_;  // inputs of the prepared sequences; empty: none
};

// lr·½(1 + cos(π·c/(n − 1))) for chunk c of n.
double cosine_rate(double lr, int64_t chunk, int64_t chunks);

}  // namespace fairway
