// The model with low-rank adapters of their own for each of several documents (scoring spec §2.6): forward and backward passes
// over a row of each, whose head runs on the rows' last chunks, and AdamW on the adapters alone. Adapters begin anew with each
// document: A as it was drawn, B and the moments zero; as published A stays as the document before has left it. No document's
// numbers depend on which stand beside it, nor on how many.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "score/distribution.h"
#include "score/evaluator.h"
#include "score/slot_head.h"

namespace fairway {

class AdapterLearner {
 public:
  AdapterLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
                 const ScoreContext& context, int64_t documents);
  ~AdapterLearner();

  int64_t documents() const { return documents_; }  // G, the most at once
  // Takes memory for windows up to this length at once, rather than again and again as they grow.
  void prepare(int64_t length);
  enum class Start : uint8_t { cold, warm };  // A drawn, or left as it is
  void begin_documents(Start start = Start::cold);

  // One chunk of a document. `window`: inputs up to the chunk's last position; `targets`: the chunk; `hints`: of each, where
  // the mode has a tilt.
  struct Chunk {
    std::span<const uint16_t> window, targets;
    std::span<const Hint> hints{};
  };
  struct Wanted {
    bool gradients = false;  // what learn() needs
    bool logits = false;     // distribution()
  };
  // A chunk of each of the first documents, all at the same place: windows would have `length` inputs were the chunks whole.
  void run(std::span<const Chunk> chunks, int64_t length, Wanted wanted);
  // Of target `row` of a document's chunk that ran last: with the tilt, which gradients know nothing of. nll(): without it.
  TargetScore score(int64_t document, int64_t row) const;
  double nll(int64_t document, int64_t row) const;
  Distribution distribution(int64_t document, int64_t row) const;
  Session& last_session();  // of what ran last, for timings
  // One step of the first documents, those whose chunks are given, on what ran last: it must have been scored.
  void learn(std::span<const ScoredTokens> chunks);

 private:
  class Pass;
  struct PassShape;
  int64_t row_length(int64_t count) const;
  int64_t lanes_for(int64_t documents) const;
  Pass& pass_for(const PassShape& shape);
  void draw();
  void record_begin();
  Session& update_for(int64_t lanes);

  ScoredModel model_;
  LoraRecipe lora_;
  std::optional<double> damping_;             // of the tilt, where there is one
  std::unique_ptr<DocumentOffsets> offsets_;  // where the mode has them
  ScoreContext context_;
  std::shared_ptr<ParamStore> params_;
  int64_t documents_, longest_;
  ParamStore adapters_;
  Arena state_;
  Tensor scalars_;                 // of AdamW, filled by the host before a step
  Tensor drawn_, first_, second_;  // adapters at the start of a document, and AdamW's moments, as the store lies
  std::array<std::unique_ptr<Session>, 2> begin_;        // by Start
  std::map<int64_t, std::unique_ptr<Session>> updates_;  // a step of AdamW, by lanes
  std::vector<std::unique_ptr<Arena>> activations_;      // of all passes; the last is the largest
  std::map<PassShape, std::unique_ptr<Pass>> passes_;
  Pass* last_ = nullptr;
  std::vector<std::span<const uint16_t>> ready_;  // targets of the chunks whose gradients are there
  int64_t steps_ = 0;
};

}  // namespace fairway
