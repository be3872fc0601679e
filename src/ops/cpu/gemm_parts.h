// Products A[K,M]ᵀ·B[K,N] over many rows with a small result: gradients of weights. K is cut into parts that depend on the
// sizes alone, each part leaves a result of its own, and these are added in order.
#pragma once

#include "ops/cpu/gemm.h"

namespace fairway::cpu {

inline constexpr int64_t kSharedFloats = int64_t{2} << 20;  // of a product's scratch: stays in the last-level cache
inline constexpr int64_t kThreadFloats = 160 << 10;         // and for each thread: half of a second-level cache

// Block i of `parts` as even as can be over `count`.
constexpr int64_t part_begin(int64_t count, int64_t parts, int64_t i) { return count * i / parts; }

bool sums_in_parts(const GemmArgs&);
void gemm_in_parts(ThreadPool&, const GemmArgs&, void* workspace);

}  // namespace fairway::cpu
