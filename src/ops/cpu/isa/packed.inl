// What the tables of packed kernels share; included inside a namespace of its own by each instruction set. The unit defines
//   template <PackedForm> void sum_tiles(const uint8_t* tiles, int64_t count, const int8_t* const* digits, int32_t
//   (*sums)[16]):
// sums over a row of tiles of weight·digit, for each place of the digits and each of the sixteen rows.

static uint32_t largest_bits(const float* x, int64_t cols) {
  int32_t most = 0;
  for (int64_t i = 0; i < cols; ++i) {
    int32_t bits;
    __builtin_memcpy(&bits, x + i, 4);
    bits &= 0x7FFFFFFF;
    most = bits > most ? bits : most;
  }
  return static_cast<uint32_t>(most);
}

static void split_digits(const DigitArgs& a) {
  int32_t low_sum = 0, middle_sum = 0, high_sum = 0;
  for (int64_t i = 0; i < a.cols; ++i) {
    const float scaled = a.x[i] * a.factor;  // exact
    const int32_t fixed = static_cast<int32_t>(scaled + (scaled < 0 ? -0.5F : 0.5F));
    const int32_t low = static_cast<int32_t>(static_cast<uint32_t>(fixed) << 24) >> 24, rest = (fixed - low) >> 8;
    const int32_t middle = static_cast<int32_t>(static_cast<uint32_t>(rest) << 24) >> 24, high = (rest - middle) >> 8;
    a.low[i] = static_cast<int8_t>(low), a.middle[i] = static_cast<int8_t>(middle), a.high[i] = static_cast<int8_t>(high);
    low_sum += low, middle_sum += middle, high_sum += high;
  }
  for (int64_t i = a.cols; i < a.padded; ++i) a.low[i] = a.middle[i] = a.high[i] = 0;
  a.sums[0] = low_sum, a.sums[1] = middle_sum, a.sums[2] = high_sum;
}

static void add_outliers(const PackedProduct& a, int64_t r, int32_t (*sums)[16]) {
  const PackedOutlier *at = a.w.outliers + (r == 0 ? 0 : a.w.outlier_end[r - 1]), *end = a.w.outliers + a.w.outlier_end[r];
  const int8_t *low = a.digits[0], *middle = a.digits[1], *high = a.digits[2];
  for (; at < end; ++at) {
    sums[0][at->row] += at->excess * low[at->col];
    sums[1][at->row] += at->excess * middle[at->col];
    sums[2][at->row] += at->excess * high[at->col];
  }
}

template <PackedForm kForm>
static void multiply_form(const PackedProduct& a) {
  constexpr int kOffset = packed_offset(kForm);
  const int64_t row_bytes = a.w.col_tiles() * packed_tile_bytes(kForm);
  for (int64_t r = a.range.begin; r < a.range.end; ++r) {
    alignas(64) int32_t sums[3][16];
    alignas(64) float y[16];
    sum_tiles<kForm>(a.w.data + r * row_bytes, a.w.col_tiles(), a.digits, sums);
    if (a.w.outliers != nullptr) add_outliers(a, r, sums);
    const float* scale = a.w.scale + r * kTileRows;
    for (int i = 0; i < 16; ++i) {
      const double low = sums[0][i] - kOffset * a.sums[0], middle = sums[1][i] - kOffset * a.sums[1],
                   high = sums[2][i] - kOffset * a.sums[2];
      const double whole = high * 65536.0 + (middle * 256.0 + low);  // below 2^53: exact
      y[i] = static_cast<float>(whole * (static_cast<double>(scale[i]) * a.unit));
    }
    const int64_t left = a.w.rows - r * kTileRows, count = left < 16 ? left : 16;
    for (int64_t i = 0; i < count; ++i) a.y[r * kTileRows + i] = y[i];
  }
}

static void multiply_any(const PackedProduct& a) {
  if (a.w.form == PackedForm::six) return multiply_form<PackedForm::six>(a);
  if (a.w.form == PackedForm::bytes) return multiply_form<PackedForm::bytes>(a);
  multiply_form<PackedForm::nibbles>(a);
}
