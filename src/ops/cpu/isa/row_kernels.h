// Kernels on rows, part of the kernel table: what an op does to a range of its rows, on one thread. Ops decide how rows are
// split (parallel.h); `partials` is the chunk's own slice of the workspace.
#pragma once

#include "base/trellis.h"
#include "ops/all_ops.h"
#include "ops/chunks.h"

namespace fairway::cpu {

template <class Op>
struct OpRowKernel {
  void (*forward)(const Op&, const Forward<Op>&, RowRange) = nullptr;
  void (*backward)(const Op&, const Backward<Op>&, RowRange, void* partials) = nullptr;
};

template <class... Ops>
struct OpRowKernelList : OpRowKernel<Ops>... {};

using OpRowKernels = OpRowKernelList<Add, SmearGate, SmearGateInput, RmsNorm, MixNorm, ValueMix, QkNormRope, HeadOutput, Skip,
                                     LaneMix, LaneMerge, FakeQuant>;

struct AdamWFactors {
  float clip, beta1, one_minus_beta1, beta2, one_minus_beta2;
  float decay;       // 1 − lr·wd
  float step;        // lr/(1 − β₁ᵗ)
  float root_scale;  // 1/√(1 − β₂ᵗ)
  float eps;
};

struct MomentumFactors {
  float clip, momentum;
  int64_t columns;
  bool row_norm;
};

struct SoftcapRow {
  int64_t count;          // V
  int64_t target;         // [0, V)
  const float* expected;  // (V) in its place; null: none
  float cap, lse, factor;
};

// Row i of a weight under a scale s: with G = gᵀ·in, dW = s·G, scaled = s·W; returns Σ_j G_ij W_ij, the gradient of s.
struct ScaledRow {
  const float* weight;
  const float* product;  // G; null: dW and the gradient of s are not wanted
  float* gradient;       // dW or null
  bool add;
  float* scaled;  // null: not wanted
};

struct UpdateKernels {
  void (*adamw)(const AdamWFactors&, RowRange elements, float* param, const float* grad, float* m, float* v) = nullptr;
  void (*blend)(float keep, float share, RowRange elements, float* target, const float* source) = nullptr;
  void (*momentum)(const MomentumFactors&, RowRange rows, const float* grad, float* buffer, float* u) = nullptr;
  double (*sum_squares)(const float* x, RowRange elements) = nullptr;
  double (*scaled_row)(const ScaledRow&, float scale, int64_t columns) = nullptr;
};

struct LossKernels {
  double (*softcap)(float* row, int64_t count, float cap) = nullptr;
  double (*expectation)(const float* row, const float* shares, int64_t count) = nullptr;
  void (*softcap_grad)(const float* row, float* grad, const SoftcapRow&) = nullptr;
};

// One block of GPTQ columns: arrays stand at the block's first column; `factor` at its diagonal.
struct GptqPanel {
  float* work;
  int64_t ld_work;
  const float* factor;
  int64_t ld_factor;
  const float* scale;
  float* error;
  int64_t ld_error;
  double* loss;
  int64_t count;  // columns
  double levels;
  bool trellis;
  const float* outputs;  // (side, side); null: rows do not make up for each other
  int64_t side;
};

// C[m,n] -= A[m,k]·B[n,k]ᵀ in double.
struct DoubleProduct {
  int64_t m, n, k;
  const double* a;
  int64_t lda;
  const double* b;
  int64_t ldb;
  double* c;
  int64_t ldc;
};

struct QuantKernels {
  void (*gptq_rows)(const GptqPanel&, int64_t begin, int64_t end) = nullptr;
  void (*gptq_trellis)(const GptqPanel&, int64_t begin, int64_t end) = nullptr;  // rows from one start of it to the next
  // One weight, of `side` rows from the first on; memory: GptqBlock::column_bytes(side).
  void (*gptq_two_sided)(const GptqPanel&, int64_t first, uint8_t* memory) = nullptr;
  void (*subtract_product)(const DoubleProduct&) = nullptr;
};

}  // namespace fairway::cpu
