// The model with low-rank adapters on one row of tokens (scoring spec §2.6): a forward and backward pass whose head runs on the
// last chunk, and AdamW on the adapters alone. They begin anew with each document: A as it was drawn, B and the moments zero.
// As published A stays as the documents before have left it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>

#include "score/distribution.h"
#include "score/evaluator.h"

namespace fairway {

class AdapterLearner {
 public:
  AdapterLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
                 const ScoreContext& context);
  ~AdapterLearner();

  enum class Start : uint8_t { cold, warm };  // A drawn, or left as it is
  void begin_document(Start start = Start::cold);
  // `window` holds the inputs up to the chunk's last position, `length` of them were the chunk whole. Leaves rows 0 … n − 1 for
  // the chunk's targets and, with `gradients`, what learn() needs.
  void run(std::span<const uint16_t> window, std::span<const uint16_t> targets, int64_t length, bool gradients);
  Distribution distribution(int64_t row) const;
  double nll(int64_t row) const;
  void learn(const ScoredTokens& chunk);  // one step on the chunk that ran last, once it is scored

 private:
  class Pass;
  Pass& pass_for(int64_t length);
  void draw();
  void record_update();

  ScoredModel model_;
  LoraRecipe lora_;
  ScoreContext context_;
  std::shared_ptr<ParamStore> params_;
  int64_t longest_;
  ParamStore adapters_;
  Arena state_;
  Tensor scalars_;  // of AdamW, filled by the host before a step
  AdapterInputs inputs_;
  std::array<std::unique_ptr<Session>, 2> begin_;    // by Start
  std::unique_ptr<Session> zero_, update_;           // gradients to zero, a step of AdamW
  std::map<int64_t, std::unique_ptr<Pass>> passes_;  // by their row length: powers of two up to the context
  Pass* last_ = nullptr;
  int64_t steps_ = 0, chunk_ready_ = 0;  // targets of the chunk whose gradients are there
};

}  // namespace fairway
