// Made-up tokens for benches of a recipe's step.
#pragma once

#include <vector>

#include "train/trainer.h"

namespace fairway::bench {

// Random tokens in memory of its own, the same for the same seed. Packed documents have lengths as web pages do: log-normal
// around a few hundred tokens, cut where the recipe cuts them, so that they begin anywhere in a kernel's tiles.
class RandomBatch {
 public:
  RandomBatch(const Recipe& recipe, const Geometry& geometry, uint64_t seed = 7);
  MicroBatch view();  // valid as long as this object

 private:
  std::vector<int32_t> tokens_, targets_, starts_;
};

}  // namespace fairway::bench
