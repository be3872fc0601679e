// Single-precision matrix multiplication after Goto: panels of A (kMr rows) against panels of B (kNv vectors wide).
// Every element of a chunk is one chain of multiply-adds over k from zero, wherever its tile lies, so tiling never changes
// bits.

// The edge of C and everything beyond C = (C +) acc goes through a tile in memory, one row at a time.
__attribute__((noinline)) void finish_tile(const GemmBlock& g, const float* tile, int64_t row, int64_t col, int64_t rows,
                                           int64_t cols) {
  const Epilogue& e = g.epilogue;
  const EpilogueKind kind = g.last ? e.kind : EpilogueKind::none;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; j += kLanes) {
      const int64_t count = cols - j;
      float* c = g.c + (row + i) * g.ldc + col + j;
      vec acc = load(tile + i * kNr + j);
      if (g.load_c) acc += load_first(c, count);
      switch (kind) {
        case EpilogueKind::none: break;
        case EpilogueKind::scale_residual: {
          if (e.scale) acc *= load_first(e.scale + col + j, count);
          if (e.other) acc += load_first(e.other + (row + i) * e.ld_other + col + j, count);
          break;
        }
        case EpilogueKind::leaky_relu2: {
          const vec slope = acc * (acc > vec{} ? splat(2.0f) : splat(2.0f * e.slope * e.slope));
          store_first(e.second + (row + i) * e.ld_second + col + j, slope, count);
          acc = slope * acc * 0.5f;
          break;
        }
        case EpilogueKind::multiply: acc *= load_first(e.other + (row + i) * e.ld_other + col + j, count); break;
      }
      store_first(c, acc, count);
    }
  }
}

template <bool kByColumn>
__attribute__((noinline)) void compute_tile(const GemmBlock& g, const float* a, int64_t stride, const float* b,
                                            const float* ahead, int64_t row, int64_t col) {
  const int64_t rows = min64(kMr, g.m - row), cols = min64(kNr, g.n - col);
  float* c = g.c + row * g.ldc + col;
  vec acc[kMr][kNv] = {};
  // A row of C is asked for now and then: all at once they would fill the line buffers that B needs.
  const int64_t part = g.k / kMr;
  for (int64_t i = 0; i <= kMr; ++i) {
    const int64_t steps = i < kMr ? part : g.k - kMr * part;
    for (int j = 0; !g.past_caches && i < rows && j < kNv; ++j) __builtin_prefetch(c + i * g.ldc + j * kLanes, 1);
    accumulate<kMr, kNv, kByColumn, true>(acc, steps, a, stride, b, kNr, ahead);
    a += kByColumn ? steps * stride : steps;
    b += steps * kNr;
    ahead += steps * 16;
  }
  const bool plain = rows == kMr && cols == kNr && !(g.last && g.epilogue.kind != EpilogueKind::none);
  const vec alpha = splat(g.alpha);
  alignas(64) float tile[kMr * kNr];
  float* out = plain ? c : tile;
  const int64_t ld = plain ? g.ldc : kNr;
  if (plain && g.load_c) {
#pragma GCC unroll 16
    for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kNv; ++j) store(out + i * ld + j * kLanes, load(out + i * ld + j * kLanes) + alpha * acc[i][j]);
    }
    return;
  }
  if (plain && g.past_caches) {
#pragma GCC unroll 16
    for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kNv; ++j) store_past_caches(c + i * g.ldc + j * kLanes, alpha * acc[i][j]);
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kNv; ++j) store(out + i * ld + j * kLanes, alpha * acc[i][j]);
  }
  if (!plain) finish_tile(g, tile, row, col, rows, cols);
}

// One panel of B stays near while the panels of A pass by from the second cache; the first few of them bring in the next one.
void gemm_block(const GemmBlock& g) {
  for (int64_t col = 0; col < g.n; col += kNr) {
    const float* b = g.b + col * g.k;
    for (int64_t row = 0; row < g.m; row += kMr) {
      const bool in_place = g.a_rows != nullptr && row + kMr <= g.m;
      const float* a = in_place ? g.a_rows + row * g.lda : g.a_rows ? g.a : g.a + row / kMr * (kMr * kRowStride);
      const int64_t fetched = row / kMr * g.k * 16;
      const float* ahead = fetched < kNr * g.k && col + kNr < g.n ? b + kNr * g.k + fetched : b;
      if (g.a_by_column) {
        compute_tile<true>(g, a, kMr, b, ahead, row, col);
      } else {
        compute_tile<false>(g, a, in_place ? g.lda : kRowStride, b, ahead, row, col);
      }
    }
  }
  if (g.past_caches) end_stores_past_caches();
}
