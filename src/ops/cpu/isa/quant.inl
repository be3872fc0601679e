// GPTQ on one block of columns, and products of doubles for the factorisations before it.

// Row `row` gets q in column j; its error goes to the block's later columns.
FAIRWAY_INLINE double take_level(const GptqPanel& p, int64_t row, int64_t j, double step, double q) {
  const float* u = p.factor + j * p.ld_factor;
  float* w = p.work + row * p.ld_work;
  const double e = (w[j] - step * q) / u[j];
  const float spread = static_cast<float>(e);
  w[j] = static_cast<float>(q);
  p.error[row * p.ld_error + j] = spread;
  float* rest = w + j + 1;
  for_columns(p.count - j - 1, [&](int64_t c, auto t) {
    using T = decltype(t);
    store<T>(rest + c, load<T>(rest + c) - spread * load<T>(u + j + 1 + c));
  });
  return e * e;
}

void gptq_rows(const GptqPanel& p, int64_t begin, int64_t end) {
  const double kRound = 6755399441055744.0;  // 1.5·2^52: adding and subtracting it leaves the nearest integer, halves to even
  for (int64_t row = begin; row < end; ++row) {
    const float* w = p.work + row * p.ld_work;
    const double step = p.scale[row];
    double loss = 0;
    for (int64_t j = 0; j < p.count; ++j) {
      const double value = w[j];
      double q = 0;
      if (step > 0) {
        const double scaled = value / step, above = scaled < -p.levels ? -p.levels : scaled;
        q = ((above > p.levels ? p.levels : above) + kRound) - kRound;
      }
      loss += take_level(p, row, j, step, q);
    }
    p.loss[row] += loss;
  }
}

typedef float eight __attribute__((vector_size(32)));
typedef int32_t eight_flags __attribute__((vector_size(32)));

// Of small numbers; halves to even.
FAIRWAY_INLINE int nearest_integer(float x) {
  const float kRound = 12582912.0F;  // 1.5·2^23, as above
  return static_cast<int>((x + kRound) - kRound);
}
FAIRWAY_INLINE float at_most(float x, int levels) {
  const auto most = static_cast<float>(levels);
  return x < -most ? -most : x > most ? most : x;
}

// The nearest of the integers that are `residue` modulo 4.
FAIRWAY_INLINE int nearest_level(float x, int residue, int levels) {
  const int near = residue + 4 * nearest_integer((at_most(x, levels) - static_cast<float>(residue)) * 0.25F);
  return near + (near > levels ? -4 : near < -levels ? 4 : 0);
}

// The path down a column; states lie in four vectors.
struct Path {
  int8_t level[kTrellisRows][4];                      // by residue
  alignas(32) int32_t taken[kTrellisRows][kTrellisStates];  // by state: whether q has its second bit
};
static_assert(kTrellisStates == 32 && kTrellisInput == 4 && kTrellisFeedback == 18, "the shuffles below are of this trellis");

FAIRWAY_INLINE void find_path(const float* x, int64_t rows, int levels, Path& path, int8_t* q) {
  const float kNever = 1e30F;
  eight m[4];
  for (eight& part : m) part = kNever - eight{};
  m[0][0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    float cost[4];
    for (int residue = 0; residue < 4; ++residue) {
      const int q_near = nearest_level(x[i], residue, levels);
      const float apart = x[i] - static_cast<float>(q_near);
      cost[residue] = apart * apart;
      path.level[i][residue] = static_cast<int8_t>(q_near);
    }
    eight next[4];
    auto* taken = reinterpret_cast<eight_flags*>(path.taken[i]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {  // states 0-7 and 8-15 come from even ones, 16-23 and 24-31 from odd ones
      const eight a = m[2 * half], b = m[2 * half + 1];
      const eight even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
      const eight odd = __builtin_shufflevector(a, b, 5, 7, 1, 3, 13, 15, 9, 11);  // exchanged by the feedback
      const eight even_without = even + cost[0], odd_without = odd + cost[1];
      const eight even_with = __builtin_shufflevector(even, even, 4, 5, 6, 7, 0, 1, 2, 3) + cost[2];
      const eight odd_with = __builtin_shufflevector(odd, odd, 4, 5, 6, 7, 0, 1, 2, 3) + cost[3];
      taken[half] = even_with < even_without, taken[2 + half] = odd_with < odd_without;
      next[half] = even_with < even_without ? even_with : even_without;
      next[2 + half] = odd_with < odd_without ? odd_with : odd_without;
    }
    for (int part = 0; part < 4; ++part) m[part] = next[part];
  }
  int state = 0;
  for (int s = 1; s < kTrellisStates; ++s)
    if (m[s / 8][s % 8] < m[state / 8][state % 8]) state = s;
  for (int64_t i = rows; i-- > 0;) {
    const bool second = path.taken[i][state] != 0;
    q[i] = path.level[i][state / (kTrellisStates / 2) + (second ? 2 : 0)];
    state = trellis_state_before(state, second);
  }
}

void gptq_trellis(const GptqPanel& p, int64_t begin, int64_t end) {
  Path path;
  float x[kTrellisRows];
  int8_t q[kTrellisRows];
  const int levels = static_cast<int>(p.levels);
  for (int64_t first = begin; first < end; first += kTrellisRows) {
    const int64_t rows = min64(kTrellisRows, end - first);
    for (int64_t j = 0; j < p.count; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        const double step = p.scale[first + i];
        x[i] = step > 0 ? static_cast<float>(p.work[(first + i) * p.ld_work + j] / step) : 0.0F;
      }
      find_path(x, rows, levels, path, q);
      for (int64_t i = 0; i < rows; ++i) p.loss[first + i] += take_level(p, first + i, j, p.scale[first + i], q[i]);
    }
  }
}

// to = from − d·v.
FAIRWAY_INLINE void subtract_scaled(float* to, const float* from, float d, const float* v, int64_t count) {
  for_columns(count, [&](int64_t c, auto t) {
    using T = decltype(t);
    store<T>(to + c, load<T>(from + c) - d * load<T>(v + c));
  });
}

// The paths to all states of the trellis, each with what its rows still to come aim at.
struct Survivors {
  float aims[2][kTrellisStates][kTrellisRows];  // before a row, after it
  int8_t level[kTrellisRows][kTrellisStates];
  uint8_t before[kTrellisRows][kTrellisStates];
};

// Rows from one start of the trellis to the next; `aims` are those of the first state, `v` stands at their diagonal.
FAIRWAY_INLINE void find_survivor(const float* aims, const float* steps, const float* v, int64_t ld_v, int64_t rows, int levels,
                                  Survivors& s, int8_t* q) {
  float sums[kTrellisStates];
  for (int state = 0; state < kTrellisStates; ++state) {
    sums[state] = state == 0 ? 0.0F : 1e30F;
    for (int64_t i = 0; i < rows; ++i) s.aims[0][state][i] = aims[i];
  }
  for (int64_t i = 0; i < rows; ++i, v += ld_v + 1) {
    const auto& now = s.aims[i % 2];
    auto& after = s.aims[1 - i % 2];
    const float step = steps[i], inverse = step > 0 ? 1 / step : 0.0F, divided = 1 / v[0];
    float d[2][kTrellisStates], cost[2][kTrellisStates];
    int near[2][kTrellisStates];
    for (int state = 0; state < kTrellisStates; ++state)
      for (int second = 0; second < 2; ++second) {
        near[second][state] = nearest_level(now[state][i] * inverse, (state & 1) + 2 * second, levels);
        d[second][state] = (now[state][i] - step * static_cast<float>(near[second][state])) * divided;
        cost[second][state] = sums[state] + d[second][state] * d[second][state];
      }
    for (int state = 0; state < kTrellisStates; ++state) {
      const int without = trellis_state_before(state, false), with = trellis_state_before(state, true);
      const int second = cost[1][with] < cost[0][without] ? 1 : 0, from = second != 0 ? with : without;
      sums[state] = cost[second][from];
      s.level[i][state] = static_cast<int8_t>(near[second][from]);
      s.before[i][state] = static_cast<uint8_t>(from);
      subtract_scaled(after[state] + i + 1, now[from] + i + 1, d[second][from], v + 1, rows - i - 1);
    }
  }
  int state = 0;
  for (int other = 1; other < kTrellisStates; ++other)
    if (sums[other] < sums[state]) state = other;
  for (int64_t i = rows; i-- > 0; state = s.before[i][state]) q[i] = s.level[i][state];
}

void gptq_two_sided(const GptqPanel& p, int64_t first, uint8_t* memory) {
  float* aims = reinterpret_cast<float*>(memory);
  Survivors& survivors = *reinterpret_cast<Survivors*>(aims + p.side);
  const float* steps = p.scale + first;
  const int levels = static_cast<int>(p.levels);
  int8_t path[kTrellisRows];
  for (int64_t j = 0; j < p.count; ++j) {
    for (int64_t i = 0; i < p.side; ++i) aims[i] = p.work[(first + i) * p.ld_work + j];
    for (int64_t i = 0; i < p.side; ++i) {
      const float* v = p.outputs + i * (p.side + 1);
      if (p.trellis && i % kTrellisRows == 0)
        find_survivor(aims + i, steps + i, v, p.side, min64(kTrellisRows, p.side - i), levels, survivors, path);
      const int q = p.trellis       ? path[i % kTrellisRows]
                    : steps[i] > 0 ? nearest_integer(at_most(aims[i] / steps[i], levels))
                                   : 0;
      const float apart = aims[i] - steps[i] * static_cast<float>(q);
      const double counted = static_cast<double>(apart) / p.factor[j * (p.ld_factor + 1)];
      take_level(p, first + i, j, steps[i], q);
      p.loss[first + i] += counted * counted;
      subtract_scaled(aims + i + 1, aims + i + 1, apart / v[0], v + 1, p.side - i - 1);
    }
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
