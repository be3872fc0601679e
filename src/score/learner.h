// The model's weights learning from scored tokens: the training program on sequences of L tokens, mean cross-entropy of a
// batch, then a step of SGD (scoring spec §2.5). Reads nothing but what the ledger has handed out.
#pragma once

#include <span>

#include "score/evaluator.h"
#include "score/sgd.h"

namespace fairway {

class ChunkLearner {
 public:
  ChunkLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
               const ScoreContext& context);

  void reset() { sgd_.reset(); }
  // Whole sequences of the tokens in their order, `epochs` times in batches.
  void learn(const ScoredTokens& tokens, double learning_rate);
  // One step on documents, each repeated until it fills a sequence.
  void learn_documents(std::span<const ScoredTokens> documents, double learning_rate);
  double seconds_per_sequence();  // forward and backward, on made-up tokens

 private:
  class Pass;
  struct Sequence {
    std::span<const uint16_t> inputs, targets;
  };
  void step(std::span<const Sequence> batch, double learning_rate);

  TttRecipe ttt_;
  int64_t length_;
  std::unique_ptr<Pass> many_, one_;  // programs over several sequences and over one
  MaskedSgd sgd_;

 public:
  ~ChunkLearner();
};

// lr·½(1 + cos(π·c/(n − 1))) for chunk c of n.
double cosine_rate(double lr, int64_t chunk, int64_t chunks);

}  // namespace fairway
