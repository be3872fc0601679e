#include "textcode/exact_predictor.h"

#include <algorithm>

#include "base/plain_math.h"
#include "textcode/exact_kernels.h"

namespace fairway::textcode {
namespace {

constexpr int64_t kMostLanes = 32;
constexpr size_t kMostCacheBytes = size_t{1} << 31;  // keys and values of all lanes, of which half is ever touched

int64_t most_lanes(const Recipe& recipe, ModelStage stage) {
  const size_t one = std::max<size_t>(1, Decoder::cache_bytes(recipe, recipe.data.seq_len, stage));
  return std::clamp<int64_t>(static_cast<int64_t>(kMostCacheBytes / one), 1, kMostLanes);
}

// fill_rope() (model/model.h) without the mathematics library.
void fill_exact_rope(const Recipe& recipe, const Tensor& rope) {
  const RopeRecipe& r = recipe.model.rope;
  const auto dims = static_cast<double>(r.dims);
  double log_base = plain_log(r.base);
  if (recipe.data.seq_len > r.reference_length && r.dims > 2)
    log_base +=
        plain_log(static_cast<double>(recipe.data.seq_len) / static_cast<double>(r.reference_length)) * (dims / (dims - 2));
  const int64_t half = r.dims / 2;
  for (int64_t position = 0; position < rope.dim(0); ++position)
    for (int64_t j = 0; j < half; ++j) {
      const double angle = static_cast<double>(position) * plain_exp(-2.0 * static_cast<double>(j) / dims * log_base);
      const SineCosine at = plain_sine_cosine(angle);
      rope.as<float>()[position * r.dims + j] = static_cast<float>(at.cosine);
      rope.as<float>()[position * r.dims + half + j] = static_cast<float>(at.sine);
    }
}

}  // namespace

ExactPredictor::ExactPredictor(const Recipe& recipe, const PackedWeights& weights, ModelStage stage, int64_t tokens,
                               Queue& queue)
    : ExactPredictor(recipe, weights, stage, queue, lanes_for(tokens, recipe.data.seq_len, most_lanes(recipe, stage))) {}

ExactPredictor::ExactPredictor(const Recipe& recipe, const PackedWeights& weights, ModelStage stage, Queue& queue,
                               int64_t lanes)
    : pool_(queue.pool()),
      executor_(weights, lanes, queue),
      decoder_(recipe, weights.params(), lanes, recipe.data.seq_len, stage, executor_),
      weights_(static_cast<size_t>(lanes), std::vector<uint32_t>(static_cast<size_t>(recipe.model.vocab))),
      totals_(static_cast<size_t>(lanes)) {
  if (decoder_.rope().numel() > 0) fill_exact_rope(recipe, decoder_.rope());
}

void ExactPredictor::step(std::span<const int32_t> tokens) {
  decoder_.step(tokens);
  pool_.parallel_for(lanes(), [&](int64_t lane) {
    const std::span<const float> z = decoder_.logits(lane);
    auto& own = weights_[static_cast<size_t>(lane)];
    totals_[static_cast<size_t>(lane)] = exact_kernels().weigh(z.data(), static_cast<int64_t>(z.size()), own.data());
  });
}

}  // namespace fairway::textcode
