// Where the mean gradient of each bank lies, and which part of it a rank owns (spec §9): matrix banks first, each padded to a
// multiple of n matrices and cut into n shards; then the tables and the scalars, in one pack where they travel alike, else in
// two, each cut evenly. With optim.exchange_precision = bf16 everything but the scalars is rounded and sent so.
#pragma once

#include <vector>

#include "model/param_store.h"
#include "recipe/recipe.h"

namespace fairway {

struct Place {
  const ParamBank* bank = nullptr;
  int64_t offset = 0;  // of its first element in the buffer
};

struct ShardedBank : Place {
  Shape shape;         // (matrices, R, C), without padding
  int64_t shard = 0;   // matrices of one rank
  int64_t padded = 0;  // elements with padding
  int64_t matrix() const { return shape[1] * shape[2]; }
  Shape shard_shape() const { return {shard, shape[1], shape[2]}; }
};

struct Pack {
  int64_t offset = 0, elements = 0;  // padded
  DType sent = DType::f32;
};

struct GradientLayout {
  std::vector<ShardedBank> matrices;  // largest first: the order of the exchanges
  std::vector<Place> replicated;      // by role, so that each optimizer rule's parameters are neighbours
  std::vector<Pack> packs;            // of the replicated
  DType sent = DType::f32;            // banks and their updates
  int64_t rounded = 0;                // so many elements are rounded to bf16, from the first on
  int64_t elements = 0;               // of the whole buffer
};

GradientLayout gradient_layout(const Recipe& recipe, const ParamStore& params, int ranks);

// A bank as (n, R, C); a lone projection is cut into slices of rows, each orthogonalised by itself.
Shape matrices_of(const ParamBank& bank, int64_t slices);

// Bytes that one rank sends in a step by the arithmetic of §9.
struct StepTraffic {
  int64_t reduce_scatter = 0, all_gather = 0;  // of the padded banks
  int64_t replicated = 0;                      // all-reduce of the packs
};
StepTraffic step_traffic(const GradientLayout& layout, int ranks);

}  // namespace fairway
