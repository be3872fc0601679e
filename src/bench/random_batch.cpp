#include "bench/random_batch.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace fairway::bench {

RandomBatch::RandomBatch(const Recipe& recipe, const Geometry& geometry, uint64_t seed)
    : tokens_(static_cast<size_t>(geometry.tokens)), targets_(tokens_.size()), starts_(tokens_.size(), 0) {
  Rng rng(seed);
  size_t end = 0, left = 0;
  for (size_t i = 0, start = 0; i < tokens_.size(); ++i) {
    tokens_[i] = static_cast<int32_t>(rng.below(static_cast<uint64_t>(recipe.model.vocab)));
    targets_[i] = static_cast<int32_t>(rng.below(static_cast<uint64_t>(recipe.model.vocab)));
    if (i == end) {
      if (left == 0) left = static_cast<size_t>(std::exp(6 + rng.normal())) + 1;
      start = i;
      end = i + std::min(left, static_cast<size_t>(recipe.data.max_segment));
      left -= end - i;
    }
    starts_[i] = static_cast<int32_t>(start);
  }
}

MicroBatch RandomBatch::view() {
  const Spec spec{{static_cast<int64_t>(tokens_.size())}, DType::i32};
  return {make_view(tokens_.data(), spec), make_view(targets_.data(), spec), make_view(starts_.data(), spec)};
}

}  // namespace fairway::bench
