// GPTQ on one block of columns, and products of doubles for the factorisations before it.

void gptq_rows(const GptqPanel& p, int64_t begin, int64_t end) {
  const double kRound = 6755399441055744.0;  // 1.5·2^52: adding and subtracting it leaves the nearest integer, halves to even
  for (int64_t row = begin; row < end; ++row) {
    float *w = p.work + row * p.ld_work, *error = p.error + row * p.ld_error;
    const double step = p.scale[row];
    double loss = 0;
    for (int64_t j = 0; j < p.count; ++j) {
      const float* u = p.factor + j * p.ld_factor;
      const double value = w[j];
      double q = 0;
      if (step > 0) {
        const double scaled = value / step, above = scaled < -p.levels ? -p.levels : scaled;
        q = ((above > p.levels ? p.levels : above) + kRound) - kRound;
      }
      const double e = (value - step * q) / u[j];
      const float spread = static_cast<float>(e);
      w[j] = static_cast<float>(q);
      error[j] = spread;
      loss += e * e;
      float* rest = w + j + 1;
      for_columns(p.count - j - 1, [&](int64_t c, auto t) {
        using T = decltype(t);
        store<T>(rest + c, load<T>(rest + c) - spread * load<T>(u + j + 1 + c));
      });
    }
    p.loss[row] += loss;
  }
}

FAIRWAY_INLINE wide_vec load_doubles(const double* from) {
  wide_vec value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

template <int kRows, int kCols>
FAIRWAY_INLINE void subtract_tile(const DoubleProduct& p, int64_t row, int64_t col) {
  const double *a = p.a + row * p.lda, *b = p.b + col * p.ldb;
  double* c = p.c + row * p.ldc + col;
  wide_vec sums[kRows][kCols] = {};
  int64_t k = 0;
  for (; k + kLanes / 2 <= p.k; k += kLanes / 2) {
    wide_vec right[kCols];
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) right[j] = load_doubles(b + j * p.ldb + k);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const wide_vec left = load_doubles(a + i * p.lda + k);
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) sums[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kCols; ++j) {
      double total = 0;
      for (int lane = 0; lane < kLanes / 2; ++lane) total += sums[i][j][lane];
      for (int64_t rest = k; rest < p.k; ++rest) total += a[i * p.lda + rest] * b[j * p.ldb + rest];
      c[i * p.ldc + j] -= total;
    }
}

void subtract_product(const DoubleProduct& p) {
  constexpr int kRows = 4, kCols = kLanes >= 16 ? 4 : 2;  // sums that fit the registers
  if (p.k == 0) return;
  int64_t row = 0;
  for (; row + kRows <= p.m; row += kRows) {
    int64_t col = 0;
    for (; col + kCols <= p.n; col += kCols) subtract_tile<kRows, kCols>(p, row, col);
    for (; col < p.n; ++col) subtract_tile<kRows, 1>(p, row, col);
  }
  for (; row < p.m; ++row)
    for (int64_t col = 0; col < p.n; ++col) subtract_tile<1, 1>(p, row, col);
}
