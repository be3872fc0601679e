// The model's weights learning from scored tokens: the training program on sequences of L tokens, mean cross-entropy of a
// batch, then a step of SGD (scoring spec §2.5). Reads nothing but what the ledger has handed out. A batch falls into groups
// (gradient_sum.h) that ranks share, and within a rank threads: a group runs on one thread from end to end where there are
// enough of them, which spares the waiting of threads for one another after every op.
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
  // Whole sequences of the tokens in their order, `epochs` times in batches. Tokens that this rank worked through, every pass
  // counted. Collective, as is the next.
  int64_t learn(const ScoredTokens& tokens, double learning_rate);
  // One step on documents, each repeated until it fills a sequence.
  void learn_documents(std::span<const ScoredTokens> documents, double learning_rate);
  double seconds_per_sequence();  // forward and backward by this rank, on made-up tokens

 private:
  struct Group;
  struct Lane;
  void make_groups(const ScoredModel& model, const ParamStore& params, bool documents);
  void make_lanes();
  void run_group(size_t group, std::span<const LearningSequence> batch, Executor& executor);
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
};

// lr·½(1 + cos(π·c/(n − 1))) for chunk c of n.
double cosine_rate(double lr, int64_t chunk, int64_t chunks);

}  // namespace fairway
