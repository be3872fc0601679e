// Optimizer and averaging passes: one read and one write of each array. Factors are made in double by the op, per call.

void update_adamw(const AdamWFactors& f, RowRange range, float* param, const float* grad, float* m, float* v) {
  const float clip = f.clip, keep1 = f.beta1, new1 = f.one_minus_beta1, keep2 = f.beta2, new2 = f.one_minus_beta2;
  const float decay = f.decay, step = f.step, root_scale = f.root_scale, eps = f.eps;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const float g = clip * grad[i];
    const float mean = keep1 * m[i] + new1 * g, square = keep2 * v[i] + new2 * (g * g);
    m[i] = mean;
    v[i] = square;
    param[i] = decay * param[i] - step * mean / (root_scale * __builtin_sqrtf(square) + eps);
  }
}

// target = keep·target + share·source; keep == 0 does not read the target.
void update_blend(float keep, float share, RowRange range, float* target, const float* source) {
  const int64_t count = range.end - range.begin;
  target += range.begin;
  source += range.begin;
  if (keep == 0.0f)
    for_columns(count, [&](int64_t c, auto t) { store(target + c, share * load<decltype(t)>(source + c)); });
  else
    for_columns(count, [&](int64_t c, auto t) {
      using T = decltype(t);
      store<T>(target + c, keep * load<T>(target + c) + share * load<T>(source + c));
    });
}

// Rows of length n: buffer ← μ·buffer + clip·grad, u = clip·grad + μ·buffer, optionally each row of u over its norm.
void update_momentum(const MomentumFactors& f, RowRange rows, const float* grad, float* buffer, float* u) {
  const float clip = f.clip, momentum = f.momentum;
  const int64_t n = f.columns;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* g_row = grad + r * n;
    float *b_row = buffer + r * n, *u_row = u + r * n;
    Sum squares;
    for_columns(n, [&](int64_t c, auto t) {
      using T = decltype(t);
      const T g = clip * load<T>(g_row + c), b = momentum * load<T>(b_row + c) + g, v = g + momentum * b;
      store<T>(b_row + c, b);
      store<T>(u_row + c, v);
      squares.add(v * v);
    });
    if (!f.row_norm) continue;
    const float norm = __builtin_sqrtf(squares.total()), inverse = 1.0f / (norm > 1e-7f ? norm : 1e-7f);
    for_columns(n, [&](int64_t c, auto t) { store(u_row + c, inverse * load<decltype(t)>(u_row + c)); });
  }
}

double sum_squares(const float* x, RowRange range) {
  return wide_dot(x + range.begin, x + range.begin, range.end - range.begin);
}

double scaled_row(const ScaledRow& row, float scale, int64_t columns) {
  double along = 0;
  if (row.product != nullptr) along = wide_dot(row.product, row.weight, columns);
  if (row.gradient != nullptr)
    for_columns(columns,
                [&](int64_t c, auto t) { put(row.gradient + c, scale * load<decltype(t)>(row.product + c), row.add); });
  if (row.scaled != nullptr)
    for_columns(columns, [&](int64_t c, auto t) { store(row.scaled + c, scale * load<decltype(t)>(row.weight + c)); });
  return along;
}

// clamp(round_half_even(w/step), ±levels)·step in double: the grid is the quantizer's own. Wide is double or wide_vec.
template <class Wide>
FAIRWAY_INLINE Wide on_grid(Wide w, double step, double levels) {
  const double kRound = 6755399441055744.0;  // 1.5·2^52: adding and subtracting it leaves the nearest integer
  const Wide zero{}, low = zero - levels, high = zero + levels;
  const Wide scaled = w / step, above = scaled < low ? low : scaled, level = above > high ? high : above;
  return ((level + kRound) - kRound) * step;
}

// The nearest half, ties to even, of a value that halves reach.
FAIRWAY_INLINE float nearest_half(float value) {
  if (value < 0x1p-14F) return (value + 0.5F) - 0.5F;  // floats beside a half lie as far apart as halves below 2^-14
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0xFFF + (bits >> 13 & 1)) & ~uint32_t{0x1FFF};
  __builtin_memcpy(&value, &bits, sizeof bits);
  return value;
}

// Σ (w − shift)^power of a row, power 1 or 2.
FAIRWAY_INLINE double moment_about(const float* w, int64_t n, double shift, bool squared) {
  wide_vec sums{};
  int64_t c = 0;
  for (; c + kLanes / 2 <= n; c += kLanes / 2) {
    const wide_vec apart = load_wide(w + c) - shift;
    sums += squared ? apart * apart : apart;
  }
  double sum = 0;
  for (int lane = 0; lane < kLanes / 2; ++lane) sum += sums[lane];
  for (; c < n; ++c) {
    const double apart = static_cast<double>(w[c]) - shift;
    sum += squared ? apart * apart : apart;
  }
  return sum;
}

FAIRWAY_INLINE double grid_step(const FakeQuant& op, const float* w, int64_t n, double absmax) {
  double reach = absmax;
  if (op.deviations > 0) {
    const auto count = static_cast<double>(n);
    const double mean = moment_about(w, n, 0, false) / count;
    const double clip = n < 2 ? 0 : op.deviations * __builtin_sqrt(moment_about(w, n, mean, true) / (count - 1));
    if (!(absmax > FakeQuant::kDegenerate * clip)) reach = clip;
  }
  const double step = reach / op.levels, grid = step < op.scale_floor ? op.scale_floor : step;
  return op.half_step ? static_cast<double>(nearest_half(static_cast<float>(grid))) : grid;
}

void forward_rows(const FakeQuant& op, const Forward<FakeQuant>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.weight);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* w = row_of(call.in.weight, r, n);
    float* q = row_of(call.out.quantized, r, n);
    vec largest{};
    for (int64_t c = 0; c < n; c += kLanes) {
      const vec v = load_first(w + c, n - c);
      largest = vmax(largest, vmax(v, -v));
    }
    float absmax = 0;
    for (int lane = 0; lane < kLanes; ++lane) absmax = largest[lane] > absmax ? largest[lane] : absmax;
    const double grid = grid_step(op, w, n, static_cast<double>(absmax));
    if (grid == 0) {
      fill_zero(q, n);
      continue;
    }
    int64_t c = 0;
    for (; c + kLanes / 2 <= n; c += kLanes / 2) {
      const half_vec value = __builtin_convertvector(on_grid(load_wide(w + c), grid, op.levels), half_vec);
      __builtin_memcpy(q + c, &value, sizeof(value));
    }
    for (; c < n; ++c) q[c] = static_cast<float>(on_grid(static_cast<double>(w[c]), grid, op.levels));
  }
}

void backward_rows(const FakeQuant&, const Backward<FakeQuant>& call, RowRange rows, void*) {
  const int64_t n = columns_of(call.in.weight);
  const float* g = row_of(call.dout.quantized, rows.begin, n);
  float* dw = row_of(call.din.weight, rows.begin, n);
  if (dw == nullptr) return;
  for_columns((rows.end - rows.begin) * n,
              [&](int64_t c, auto t) { put(dw + c, load<decltype(t)>(g + c), call.din.weight.accumulate); });
}
