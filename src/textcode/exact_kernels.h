// The loops of a token's work that are neither exact in integers nor small: attention over cached keys and values, softcapped
// logits, weights of a distribution, dot products. Written once (exact.inl) in float additions and products of a fixed order,
// and compiled for each instruction set without contraction, so that all of them give the same bits.
#pragma once

#include <cstdint>

namespace fairway::textcode {

// One row and kv head of AttentionCached: stores k and v at `position`, then attends.
struct AttendArgs {
  const float* q = nullptr;  // (group, size)
  const float *k = nullptr, *v = nullptr;
  float* keys = nullptr;                                // as AttentionCached has them, of this head
  float* values = nullptr;                              // (T, size)
  float* scores = nullptr;                              // room for group × (T up to whole blocks of keys)
  float* y = nullptr;                                   // (group, size)
  int64_t group = 0, size = 0, position = 0, room = 0;  // room: scores of one head
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
extern const ExactKernels exact_generic, exact_avx2, exact_avx512;

const ExactKernels& exact_kernels();  // of the instruction set that ops/cpu works with

}  // namespace fairway::textcode
