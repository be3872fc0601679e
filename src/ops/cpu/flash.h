// Causal attention with grouped key/value heads, in tiles with a running softmax: scores are never stored for a whole row.
// Row m of head h sees rows start(m) … m of kv head h / (H/K). Bits do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"

namespace fairway::cpu {

inline constexpr int64_t kMaxHeadSize = 128;  // tiles live on the stack

struct FlashShape {
  int64_t rows = 0;        // M, whole sequences
  int64_t row_length = 0;  // T; start(m) is m / T * T unless segment_start says otherwise
  int64_t heads = 0;       // H
  int64_t kv_heads = 0;    // K, divides H
  int64_t head_size = 0;   // E, a multiple of 8 up to kMaxHeadSize
  float scale = 1.0f;
};

struct FlashForward {
  FlashShape shape;
  const float* q = nullptr;                // (M, H E)
  const float* k = nullptr;                // (M, K E)
  const float* v = nullptr;                // (M, K E)
  const int32_t* segment_start = nullptr;  // (M) start(m), at most m, non-decreasing; optional, and then T plays no part
  float* y = nullptr;                      // (M, H E)
  float* lse = nullptr;                    // (M, H) log-sum-exp of the scaled scores
};

struct FlashBackward {
  FlashShape shape;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const int32_t* segment_start = nullptr;
  const float *z = nullptr, *dz = nullptr;  // what the heads' outputs became: Σ z·dz of a head is Σ y·dy
  const float* lse = nullptr;
  const float* dy = nullptr;
  float* dq = nullptr;  // each written, or added to when its flag says so, or null when not wanted
  float* dk = nullptr;
  float* dv = nullptr;
  bool add_dq = false, add_dk = false, add_dv = false;
};

// Bytes of scratch, whatever the number of threads; any alignment will do.
size_t flash_forward_workspace(const FlashShape& shape);
size_t flash_backward_workspace(const FlashShape& shape);

void flash_forward(ThreadPool& pool, const FlashForward& args, void* workspace);
void flash_backward(ThreadPool& pool, const FlashBackward& args, void* workspace);

}  // namespace fairway::cpu
