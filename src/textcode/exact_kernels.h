// The loops of a token's work that are not small, besides the products of matrices: attention over cached keys and values,
// softcapped logits, weights of a distribution, dot products. Written once (exact.inl) in sums of integers, and in float
// additions and products of a fixed order; compiled for each instruction set without contraction, so that all of them give the
// same bits.
#pragma once

#include <cstdint>

namespace fairway::textcode {

inline constexpr int64_t kMostGroup = 16, kMostHeadSize = 256;  // query heads of a kv head; channels

// A query in digits: q ≈ unit·(256·high + low), both signed.
struct QueryDigits {
  uint8_t high[kMostHeadSize], low[kMostHeadSize];
  int32_t sum;  // of 256·high + low
  float unit;
};

// One row and kv head of AttentionCached: stores k and v at `position`, then attends. Keys and values are kept as bytes with a
// unit for each position, queries and weights are cut into two digits, and sums of their products are exact in integers.
struct AttendArgs {
  const float* q = nullptr;  // (group, size)
  const float *k = nullptr, *v = nullptr;
  uint8_t* keys = nullptr;                                          // (T/16, padded/4, 16, 4): 128 more than the number
  int8_t* values = nullptr;                                         // (T/4, padded, 4)
  float* key_units = nullptr;                                       // (T)
  float* value_units = nullptr;                                     // (T)
  float* scores = nullptr;                                          // (group, room)
  uint8_t* digits = nullptr;                                        // (group, 2, room): of the weights
  float* sums = nullptr;                                            // (group, padded)
  float* y = nullptr;                                               // (group, size)
  int64_t group = 0, size = 0, padded = 0, position = 0, room = 0;  // padded: size up to whole vectors; room: T, whole blocks
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
