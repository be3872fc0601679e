// An artifact's predictions, the same on every machine: integer weights of all tokens, from logits of an ExactExecutor.
#pragma once

#include "generate/decoder.h"
#include "textcode/exact_executor.h"
#include "textcode/token_code.h"

namespace fairway::textcode {

class ExactPredictor final : public TokenPredictor {
 public:
  // For a text of so many tokens. Everything given must outlive it.
  ExactPredictor(const Recipe& recipe, const PackedWeights& weights, ModelStage stage, int64_t tokens, Queue& queue);

  int64_t lanes() const override { return decoder_.rows(); }
  int64_t context() const override { return decoder_.length(); }
  void restart() override { decoder_.restart(); }
  void step(std::span<const int32_t> tokens) override;
  std::span<const uint32_t> weights(int64_t lane) const override { return weights_[static_cast<size_t>(lane)]; }
  uint64_t total(int64_t lane) const override { return totals_[static_cast<size_t>(lane)]; }
  std::span<const float> logits(int64_t lane) const { return decoder_.logits(lane); }

 private:
  ExactPredictor(const Recipe& recipe, const PackedWeights& weights, ModelStage stage, Queue& queue, int64_t lanes);

  ThreadPool& pool_;
  ExactExecutor executor_;
  Decoder decoder_;
  std::vector<std::vector<uint32_t>> weights_;
  std::vector<uint64_t> totals_;
};

}  // namespace fairway::textcode
