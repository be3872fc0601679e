// Packing for gemm.inl: panels are read front to back by the kernels, so strides and edges are dealt with here.

constexpr int kNr = kNv * kLanes;
constexpr int kRowStride = kMaxK + 16;  // inside a row panel of A; the 16 keeps rows out of one cache set

constexpr int kPrefetchRows = 12;  // ahead: rows lie too far apart for the hardware to foresee

FAIRWAY_INLINE void copy(const float* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  for (; i < count; ++i) to[i] = from[i];
}
FAIRWAY_INLINE void fill_zero(float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 0;
}

// A[M,K]: a panel is kMr rows of kRowStride.
void pack_a_rows(const float* a, int64_t lda, int64_t count, int64_t k, float* packed) {
  for (int64_t row = 0; row < count; ++row) {
    const float* from = a + row * lda;
    for (int64_t ahead = 0; ahead < k; ahead += 16) __builtin_prefetch(from + 2 * lda + ahead);
    copy(from, packed + (row / kMr) * (kMr * kRowStride) + (row % kMr) * kRowStride, k);
  }
  for (int64_t row = count; row % kMr; ++row) {
    fill_zero(packed + (row / kMr) * (kMr * kRowStride) + (row % kMr) * kRowStride, k);
  }
}

// A[K,M]: a panel is k columns of kMr, `panel` floats after the one before. Columns are copied by vectors that spill into the
// next one, which comes later; the last column is copied exactly, since what follows may be another thread's.
void pack_a_columns(const float* a, int64_t lda, int64_t count, int64_t k, float* packed, int64_t panel) {
  constexpr int kWide = 2 * kMr <= kLanes ? kLanes / 2 : kLanes;
  typedef float column __attribute__((vector_size(4 * kWide)));
  static_assert(kMr <= kWide && kWide < 2 * kMr, "a column of a panel fits one vector, which spills into one more at most");
  const auto copy_column = [](const float* from, float* to, int64_t rows) {
    for (int i = 0; i < kMr; ++i) to[i] = i < rows ? from[i] : 0.0f;
  };
  for (int64_t p = 0; p + 1 < k; ++p) {
    const float* from = a + p * lda;
    float* to = packed + p * kMr;
    for (int64_t ahead = 0; ahead < count; ahead += 16) __builtin_prefetch(from + kPrefetchRows * lda + ahead);
    int64_t row = 0;
    for (; row + kWide <= count; row += kMr, to += panel) {
      column value;
      __builtin_memcpy(&value, from + row, sizeof value);
      __builtin_memcpy(to, &value, sizeof value);
    }
    for (; row < count; row += kMr, to += panel) copy_column(from + row, to, count - row);
  }
  const float* last = a + (k - 1) * lda;
  for (int64_t row = 0; row < count; row += kMr, packed += panel) copy_column(last + row, packed + (k - 1) * kMr, count - row);
}

// B[K,N]: a panel is k rows of kNr.
void pack_b_columns(const float* b, int64_t ldb, int64_t count, int64_t k, float* packed) {
  for (int64_t p = 0; p < k; ++p) {
    const float* from = b + p * ldb;
    float* to = packed + p * kNr;
    for (int64_t ahead = 0; ahead < count; ahead += 16) __builtin_prefetch(from + kPrefetchRows * ldb + ahead);
    int64_t col = 0;
    for (; col + kNr <= count; col += kNr, to += k * kNr) {
#pragma GCC unroll 8
      for (int j = 0; j < kNv; ++j) store(to + j * kLanes, load(from + col + j * kLanes));
    }
    if (col < count) {
      for (int j = 0; j < kNr; ++j) to[j] = col + j < count ? from[col + j] : 0.0f;
    }
  }
}

// to[j * to_stride + i] = from[i * from_stride + j] for i, j < kLanes: swaps ever larger off-diagonal blocks in registers.
template <int kStep>
FAIRWAY_INLINE void swap_blocks(vec (&r)[kLanes]) {
  ivec low, high;  // lane l of each result: from the first row below kLanes, from the second above
  for (int l = 0; l < kLanes; ++l) {
    low[l] = l & kStep ? kLanes + l - kStep : l;
    high[l] = l & kStep ? kLanes + l : l + kStep;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i & kStep) continue;
    const vec a = r[i], b = r[i + kStep];
    r[i] = __builtin_shuffle(a, b, low);
    r[i + kStep] = __builtin_shuffle(a, b, high);
  }
}

FAIRWAY_INLINE void transpose_square(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  vec r[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) r[i] = load(from + i * from_stride);
  swap_blocks<1>(r);
  swap_blocks<2>(r);
  if constexpr (kLanes > 4) swap_blocks<4>(r);
  if constexpr (kLanes > 8) swap_blocks<8>(r);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store(to + i * to_stride, r[i]);
}

// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < cols.
void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t cols, float* to, int64_t to_stride) {
  int64_t i = 0;
  for (; i + kLanes <= rows; i += kLanes) {
    int64_t j = 0;
    for (; j + kLanes <= cols; j += kLanes) {
      transpose_square(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
    for (; j < cols; ++j) {
      for (int u = 0; u < kLanes; ++u) to[j * to_stride + i + u] = from[(i + u) * from_stride + j];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

// B[N,K]: a panel is k rows of kNr, so rows of B become columns.
void pack_b_rows(const float* b, int64_t ldb, int64_t count, int64_t k, float* packed) {
  for (int64_t col = 0; col < count; col += kNr, packed += k * kNr) {
    const int64_t cols = min64(kNr, count - col);
    transpose(b + col * ldb, ldb, cols, k, packed, kNr);
    for (int64_t p = 0; cols < kNr && p < k; ++p) fill_zero(packed + p * kNr + cols, kNr - cols);
  }
}
