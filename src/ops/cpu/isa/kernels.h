// The table of SIMD kernels, one per instruction set, picked once by what the processor says of itself (or by FAIRWAY_ISA:
// generic everywhere, avx2 and avx512 on x86-64, neon on Arm).
// Kernels take raw pointers and sizes, run on one thread and never allocate. A family of kernels is one .inl file, compiled
// for each; to add one, declare it here, write it in its .inl and name it in table.inl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/cpu/isa/row_kernels.h"

namespace fairway::cpu {

// What happens to a finished tile of alpha * A B (+ C) before it leaves the registers' neighbourhood.
enum class EpilogueKind : uint8_t {
  none,
  scale_residual,  // C[m,n] = other[m,n] + scale[n] * acc; an absent scale is 1, an absent other 0
  leaky_relu2,     // second[m,n] = acc > 0 ? 2 acc : 2 slope^2 acc (the slope at acc);  C[m,n] = second * acc / 2
  multiply,        // C[m,n] = acc * other[m,n]
};

struct Epilogue {
  EpilogueKind kind = EpilogueKind::none;
  const float* scale = nullptr;  // (N)
  const float* other = nullptr;  // (M,N), leading dimension ld_other; must not overlap C
  int64_t ld_other = 0;
  float* second = nullptr;  // (M,N), leading dimension ld_second
  int64_t ld_second = 0;
  float slope = 0.5f;  // of leaky_relu2
};

// One chunk of K of a block of C: C = (load_c ? C : 0) + alpha * A B, then the epilogue when this chunk is the last.
// c and the epilogue's pointers stand at the block's first element.
struct GemmBlock {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;       // ceil(m / mr) packed panels; with a_rows only the last one, if it is not full
  const float* a_rows = nullptr;  // rows of A[M,K] read where they lie, lda apart; null: all panels are packed
  int64_t lda = 0;
  const float* b = nullptr;  // ceil(n / nr) packed panels
  bool a_by_column = false;  // the panels of A came from pack_a_columns and lie mr * k + kPanelSlack apart
  float* c = nullptr;
  int64_t ldc = 0;
  float alpha = 1.0f;
  bool load_c = false;
  bool last = true;
  // C, or the epilogue's `second`: overwritten, aligned to vectors and too large for the caches.
  bool past_caches = false, second_past_caches = false;
  Epilogue epilogue;
};

inline constexpr int64_t kPanelSlack = 16;  // floats between panels of columns: keeps them out of one cache set

// Packing copies `count` rows or columns by `k` values into panels and fills the last panel with zeros.
struct GemmKernels {
  int64_t mr = 0, nr = 0;  // the register tile
  int64_t max_k = 0;       // the longest chunk of K; also fixes the stride inside a panel of A
  int64_t a_panel = 0;     // floats per packed panel of A
  void (*pack_a_rows)(const float* a, int64_t lda, int64_t count, int64_t k, float* packed) = nullptr;  // A[M,K]
  // A[K,M], panels `panel` floats apart
  void (*pack_a_columns)(const float* a, int64_t lda, int64_t count, int64_t k, float* packed, int64_t panel) = nullptr;
  void (*pack_b_rows)(const float* b, int64_t ldb, int64_t count, int64_t k, float* packed) = nullptr;     // B[N,K]
  void (*pack_b_columns)(const float* b, int64_t ldb, int64_t count, int64_t k, float* packed) = nullptr;  // B[K,N]
  void (*block)(const GemmBlock&) = nullptr;
};

// y[i] = f(x[i]); x and y may be the same array. exp flushes below -87.3 to zero; all keep NaN.
struct MathKernels {
  void (*exp)(const float* x, float* y, int64_t count) = nullptr;
  void (*sigmoid)(const float* x, float* y, int64_t count) = nullptr;
  void (*tanh)(const float* x, float* y, int64_t count) = nullptr;
};

// One tile of queries of one head. Positions count from the first row of a span: rows that see nothing before it.
struct AttentionForwardTile {
  int64_t head_size = 0;
  float scale = 1.0f;
  const float* q = nullptr;  // the tile's first query
  int64_t ld_q = 0;
  const float* k = nullptr;        // (span, E) dense, position 0
  const float* v = nullptr;        // (span, E) dense
  int64_t first = 0, count = 0;    // positions of the queries; count <= AttentionKernels::queries
  const int32_t* start = nullptr;  // (count) first row each query sees, less `origin` a position; null: all see position 0
  int64_t origin = 0;
  float* y = nullptr;
  int64_t ld_y = 0;
  float* lse = nullptr;
  int64_t ld_lse = 0;
};

// One span of one kv head with all its query heads. Arrays of a head are dense (span, E) and `head_stride` floats apart.
struct AttentionBackwardSpan {
  int64_t head_size = 0;
  float scale = 1.0f;
  int64_t rows = 0;                // positions in the span
  int64_t group = 1;               // query heads
  const int32_t* start = nullptr;  // (rows) as above
  int64_t origin = 0;
  const float* k = nullptr;
  const float* v = nullptr;
  int64_t ld_kv = 0;
  const float* q = nullptr;
  const float* dy = nullptr;
  float* dq = nullptr;  // zero on entry
  int64_t head_stride = 0;
  const float* lse2 = nullptr;  // (span) per head, log-sum-exp in powers of two
  const float* dot = nullptr;   // (span) per head, y . dy
  int64_t row_stride = 0;       // floats between heads of lse2 and dot
  float* dk = nullptr;          // may be null, like dv
  float* dv = nullptr;
  bool add_dk = false, add_dv = false;
};

// All query heads of one kv head for one new token over cached keys and values (ops/attention_cached.h).
struct CachedAttention {
  int64_t head_size = 0;
  int64_t group = 1;  // query heads
  int64_t count = 0;  // positions seen
  float scale = 1.0f;
  const float* q = nullptr;       // (group, E)
  const float* keys = nullptr;    // blocks of kCacheKeys positions
  const float* values = nullptr;  // (count, E)
  float* scores = nullptr;        // (group, count rounded up to whole blocks)
  float* y = nullptr;             // (group, E)
};

struct AttentionKernels {
  int64_t queries = 0;  // in a forward tile
  void (*cached)(const CachedAttention&) = nullptr;
  void (*forward)(const AttentionForwardTile&) = nullptr;
  void (*backward)(const AttentionBackwardSpan&) = nullptr;
};

// Dense row helpers that attention's packing needs: y (+)= x, and x . y.
struct RowKernels {
  void (*copy)(const float* x, float* y, int64_t count) = nullptr;
  void (*add)(const float* x, float* y, int64_t count) = nullptr;
  float (*dot)(const float* x, const float* y, int64_t count) = nullptr;
};

struct KernelTable {
  const char* name = "";
  int lanes = 1;  // floats in one vector
  GemmKernels gemm;
  AttentionKernels attention;
  MathKernels math;
  RowKernels rows;
  OpRowKernels op_rows;
  UpdateKernels update;
  LossKernels loss;
  QuantKernels quant;
  double (*fma_burst)(int64_t rounds) = nullptr;  // runs independent chains of FMAs; returns the flops done
};

const KernelTable& kernels();  // throws InputError when FAIRWAY_ISA names something unknown or absent
const char* isa_name();

std::vector<const KernelTable*> available_kernels();  // that this machine can run, the quickest last
// The table of that name, or null when it is unknown or this machine cannot run it. For tests and benchmarks.
const KernelTable* find_kernels(const char* name);
// Replaces what kernels() returns, for tests and benchmarks; not while another thread computes.
void use_kernels(const KernelTable&);

}  // namespace fairway::cpu
