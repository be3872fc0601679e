// Single-precision matrix multiplication of row-major operands with fused epilogues. Bits do not depend on the number of
// threads: K is cut into chunks that depend on K alone, added up in order, and each output element belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "ops/cpu/isa/kernels.h"
#include "ops/product_layout.h"

namespace fairway::cpu {

// C[M,N] = epilogue(alpha * op(A) op(B) + (accumulate ? C : 0)). Any sizes from 1, any alignment; leading dimensions count
// floats between rows. C overlaps no input.
struct GemmArgs {
  ProductLayout layout = ProductLayout::nt;
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  float alpha = 1.0f;
  bool accumulate = false;
  Epilogue epilogue = {};
};

// Bytes of scratch for any shape on that many threads; any alignment will do.
size_t gemm_workspace(int threads);

void gemm(ThreadPool& pool, const GemmArgs& args, void* workspace);

// `count` products that differ by fixed strides (floats) between the starts of their operands.
struct GemmBatch {
  int64_t count = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};
void gemm_batched(ThreadPool& pool, const GemmArgs& first, const GemmBatch& batch, void* workspace);

}  // namespace fairway::cpu
