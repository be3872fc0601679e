// The loops of a token's work that are not small, besides the products of matrices: attention over cached keys and values,
// softcapped logits, weights of a distribution, dot products. Written once (exact.inl) in sums of integers, and in float
// additions and products of a fixed order; compiled for each instruction set without contraction, so that all of them give the
// same bits.
#pragma once

#include <cstdint>

namespace fairway::textcode {

inline constexpr int64_t kMostGroup = 16, kMostHeadSize = 256;  // query heads of a kv head; channels
inline constexpr int64_t kTilePositions = 64;                   // whose weighted values are summed in integers

// The largest n of which `terms` products n·n still sum to less than 2^31.
constexpr int16_t most_factor(int64_t terms) {
  int16_t n = 32767;
  while (int64_t{n} * n * terms >= int64_t{1} << 31) --n;
  return n;
}
inline constexpr float kMostValue = most_factor(kTilePositions);  // of values and of weights: 5,792

// A query as whole numbers: q ≈ unit·n.
struct WholeQuery {
  int16_t n[kMostHeadSize];
  float unit;
};

// One row and kv head of AttentionCached: stores k and v at `position`, then attends. Keys, values, queries and weights are
// numbers of 16 bits, each with a unit for its position, head or tile, and as large as exact sums of 32 bits let them be.
struct AttendArgs {
  const float* q = nullptr;  // (group, size)
  const float *k = nullptr, *v = nullptr;
  int16_t* keys = nullptr;                                          // (T/16, padded/2, 16, 2)
  int16_t* values = nullptr;                                        // (T/2, padded, 2)
  float* key_units = nullptr;                                       // (T)
  float* value_units = nullptr;                                     // (T)
  float* scores = nullptr;                                          // (group, room)
  float* sums = nullptr;                                            // (group, padded)
  float* y = nullptr;                                               // (group, size)
  int64_t group = 0, size = 0, padded = 0, position = 0, room = 0;  // padded: size up to whole vectors; room: T, whole blocks
  float most_key = 0;                                               // of keys and queries: most_factor(padded)
  float scale = 1;
};

inline constexpr float kWeightScale = 1 << 26;  // weight of the likeliest token, but for 1

struct ExactKernels {
  void (*attend)(const AttendArgs&) = nullptr;
  float (*dot)(const float* a, const float* b, int64_t count) = nullptr;
  void (*softcap)(float* logits, int64_t count, float cap) = nullptr;  // cap·tanh(x/cap), in place
  // 1 + ⌊kWeightScale·exp(z − max z)⌋ of each; returns their sum. A logit that is no number weighs 1.
  uint64_t (*weigh)(const float* logits, int64_t count, uint32_t* weights) = nullptr;
};
extern const ExactKernels exact_generic, exact_avx2, exact_avx512, exact_vnni;

const ExactKernels& exact_kernels();  // of the instruction set that ops/cpu works with

}  // namespace fairway::textcode
