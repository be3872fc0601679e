// Single-precision matrix multiplication after Goto: panels of A (kMr rows) against panels of B (kNv vectors wide).
// Every element of a chunk is one chain of multiply-adds over k from zero, wherever its tile lies, so tiling never changes
// bits.

// The edge of C goes through a tile in memory, one row at a time.
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

// A whole tile, from the registers to where it belongs.
template <EpilogueKind kKind>
FAIRWAY_INLINE void write_tile(const GemmBlock& g, const vec (&acc)[kMr][kNv], int64_t row, int64_t col) {
  const Epilogue& e = g.epilogue;
  const vec alpha = splat(g.alpha);
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
    float* c = g.c + (row + i) * g.ldc + col;
    const float* other = e.other ? e.other + (row + i) * e.ld_other + col : nullptr;
#pragma GCC unroll 16
    for (int j = 0; j < kNv; ++j) {
      vec out = alpha * acc[i][j];
      if (g.load_c) out += load(c + j * kLanes);
      if constexpr (kKind == EpilogueKind::scale_residual) {
        if (e.scale) out *= load(e.scale + col + j * kLanes);
        if (other) out += load(other + j * kLanes);
      } else if constexpr (kKind == EpilogueKind::multiply) {
        out *= load(other + j * kLanes);
      } else if constexpr (kKind == EpilogueKind::leaky_relu2) {
        float* second = e.second + (row + i) * e.ld_second + col + j * kLanes;
        const vec slope = out * (out > vec{} ? splat(2.0f) : splat(2.0f * e.slope * e.slope));
        g.second_past_caches ? store_past_caches(second, slope) : store(second, slope);
        out = slope * out * 0.5f;
      }
      g.past_caches ? store_past_caches(c + j * kLanes, out) : store(c + j * kLanes, out);
    }
  }
}

// Asks for what row `row` of a tile will read or overwrite.
FAIRWAY_INLINE void prefetch_row(const GemmBlock& g, int64_t row, int64_t col) {
  const Epilogue& e = g.epilogue;
#pragma GCC unroll 16
  for (int j = 0; j < kNr; j += 16) {
    if (!g.past_caches) __builtin_prefetch(g.c + row * g.ldc + col + j, 1);
    if (g.last && e.other) __builtin_prefetch(e.other + row * e.ld_other + col + j);
    if (g.last && e.second && !g.second_past_caches) __builtin_prefetch(e.second + row * e.ld_second + col + j, 1);
  }
}

template <bool kByColumn>
__attribute__((noinline)) void compute_tile(const GemmBlock& g, const float* a, int64_t stride, const float* b,
                                            const float* ahead, int64_t row, int64_t col) {
  const int64_t rows = min64(kMr, g.m - row), cols = min64(kNr, g.n - col);
  vec acc[kMr][kNv] = {};
  // A row of C is asked for now and then: all at once they would fill the line buffers that B needs.
  const int64_t part = g.k / kMr;
  for (int64_t i = 0; i <= kMr; ++i) {
    const int64_t steps = i < kMr ? part : g.k - kMr * part;
    if (i < rows) prefetch_row(g, row + i, col);
    accumulate<kMr, kNv, kByColumn, true>(acc, steps, a, stride, b, kNr, ahead);
    a += kByColumn ? steps * stride : steps;
    b += steps * kNr;
    ahead += steps * 16;
  }
  if (rows < kMr || cols < kNr) {
    alignas(64) float tile[kMr * kNr];
#pragma GCC unroll 16
    for (int i = 0; i < kMr; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kNv; ++j) store(tile + i * kNr + j * kLanes, splat(g.alpha) * acc[i][j]);
    }
    return finish_tile(g, tile, row, col, rows, cols);
  }
  switch (g.last ? g.epilogue.kind : EpilogueKind::none) {
    case EpilogueKind::none: return write_tile<EpilogueKind::none>(g, acc, row, col);
    case EpilogueKind::scale_residual: return write_tile<EpilogueKind::scale_residual>(g, acc, row, col);
    case EpilogueKind::leaky_relu2: return write_tile<EpilogueKind::leaky_relu2>(g, acc, row, col);
    case EpilogueKind::multiply: return write_tile<EpilogueKind::multiply>(g, acc, row, col);
  }
}

// One panel of B stays near while the panels of A pass by from the second cache; the first few of them bring in the next one.
void gemm_block(const GemmBlock& g) {
  for (int64_t col = 0; col < g.n; col += kNr) {
    const float* b = g.b + col * g.k;
    for (int64_t row = 0; row < g.m; row += kMr) {
      const bool in_place = g.a_rows != nullptr && row + kMr <= g.m;
      const int64_t panel = g.a_by_column ? kMr * g.k + kPanelSlack : kMr * kRowStride;
      const float* a = in_place ? g.a_rows + row * g.lda : g.a_rows ? g.a : g.a + row / kMr * panel;
      const int64_t fetched = row / kMr * g.k * 16;
      const float* ahead = fetched < kNr * g.k && col + kNr < g.n ? b + kNr * g.k + fetched : b;
      if (g.a_by_column) {
        compute_tile<true>(g, a, kMr, b, ahead, row, col);
      } else {
        compute_tile<false>(g, a, in_place ? g.lda : kRowStride, b, ahead, row, col);
      }
    }
  }
  if (g.past_caches || g.second_past_caches) end_stores_past_caches();
}
