// Rows combined element by element: Add, ValueMix, Skip, LaneMix, LaneMerge. Sums of one number per call are kept in double
// from row to row.

void forward_rows(const Add&, const Forward<Add>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.a), begin = rows.begin * n;
  const float *a = base_of(call.in.a) + begin, *b = base_of(call.in.b) + begin;
  float* y = base_of(call.out.y) + begin;
  for_columns((rows.end - rows.begin) * n,
              [&](int64_t c, auto t) { store(y + c, load<decltype(t)>(a + c) + load<decltype(t)>(b + c)); });
}

void backward_rows(const Add&, const Backward<Add>& call, RowRange rows, void*) {
  const int64_t n = columns_of(call.in.a);
  const float* g = row_of(call.dout.y, rows.begin, n);
  float *da = row_of(call.din.a, rows.begin, n), *db = row_of(call.din.b, rows.begin, n);
  for_columns((rows.end - rows.begin) * n, [&](int64_t c, auto t) {
    using T = decltype(t);
    const T v = load<T>(g + c);
    if (da != nullptr) put<T>(da + c, v, call.din.a.accumulate);
    if (db != nullptr) put<T>(db + c, v, call.din.b.accumulate);
  });
}

void forward_rows(const ValueMix&, const Forward<ValueMix>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.v), begin = rows.begin * n;
  const float *v = base_of(call.in.v) + begin, *embed = base_of(call.in.embed) + begin, scale = *base_of(call.in.scale);
  float* y = base_of(call.out.y) + begin;
  for_columns((rows.end - rows.begin) * n, [&](int64_t c, auto t) {
    using T = decltype(t);
    store(y + c, load<T>(v + c) + scale * load<T>(embed + c));
  });
}

void backward_rows(const ValueMix&, const Backward<ValueMix>& call, RowRange rows, void* partials) {
  const int64_t n = columns_of(call.in.v);
  const float scale = *base_of(call.in.scale);
  double sum = 0;
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float *g = row_of(call.dout.y, m, n), *embed = row_of(call.in.embed, m, n);
    float *dv = row_of(call.din.v, m, n), *dembed = row_of(call.din.embed, m, n);
    for_columns(n, [&](int64_t c, auto t) {
      using T = decltype(t);
      const T v = load<T>(g + c);
      if (dv != nullptr) put<T>(dv + c, v, call.din.v.accumulate);
      if (dembed != nullptr) put<T>(dembed + c, scale * v, call.din.embed.accumulate);
    });
    sum += wide_dot(g, embed, n);
  }
  *static_cast<double*>(partials) = sum;
}

// Columns whose gates fit on the stack; the gates of a block are made once and serve all rows of the task.
constexpr int64_t kGateBlock = 512;

// y = keep⊙x + take⊙skip.
void skip_factors(const float* gate, const float* weight, int64_t first, int64_t count, float* keep, float* take) {
  if (gate != nullptr) map<sigmoid_of>(gate + first, keep, count);
  for (int64_t c = 0; c < count; ++c) {
    if (gate == nullptr) keep[c] = 1.0f;
    take[c] = gate != nullptr ? (1.0f - keep[c]) * weight[first + c] : weight[first + c];
  }
}

void forward_rows(const Skip&, const Forward<Skip>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.x);
  for (int64_t first = 0; first < n; first += kGateBlock) {
    const int64_t count = n - first < kGateBlock ? n - first : kGateBlock;
    float keep[kGateBlock], take[kGateBlock];
    skip_factors(base_of(call.in.gate), base_of(call.in.weight), first, count, keep, take);
    for (int64_t m = rows.begin; m < rows.end; ++m) {
      const float *x = row_of(call.in.x, m, n) + first, *skip = row_of(call.in.skip, m, n) + first;
      float* y = row_of(call.out.y, m, n) + first;
      for_columns(count, [&](int64_t c, auto t) {
        using T = decltype(t);
        store(y + c, load<T>(keep + c) * load<T>(x + c) + load<T>(take + c) * load<T>(skip + c));
      });
    }
  }
}

// Partials: Σ g⊙skip, Σ g⊙(x − weight⊙skip); the op multiplies them by what depends on the column only.
void backward_rows(const Skip&, const Backward<Skip>& call, RowRange rows, void* partials) {
  const int64_t n = columns_of(call.in.x);
  fill_zero(static_cast<float*>(partials), 2 * n);
  for (int64_t first = 0; first < n; first += kGateBlock) {
    const int64_t count = n - first < kGateBlock ? n - first : kGateBlock;
    const float* weight = base_of(call.in.weight) + first;
    float *sums = static_cast<float*>(partials) + first, keep[kGateBlock], take[kGateBlock];
    skip_factors(base_of(call.in.gate), base_of(call.in.weight), first, count, keep, take);
    for (int64_t m = rows.begin; m < rows.end; ++m) {
      const int64_t at = m * n + first;
      const float *x = base_of(call.in.x) + at, *skip = base_of(call.in.skip) + at, *g = base_of(call.dout.y) + at;
      float *dx = call.din.x.present ? base_of(call.din.x) + at : nullptr,
            *dskip = call.din.skip.present ? base_of(call.din.skip) + at : nullptr;
      for_columns(count, [&](int64_t c, auto t) {
        using T = decltype(t);
        const T v = load<T>(g + c), taken = load<T>(skip + c);
        if (dx != nullptr) put<T>(dx + c, load<T>(keep + c) * v, call.din.x.accumulate);
        if (dskip != nullptr) put<T>(dskip + c, load<T>(take + c) * v, call.din.skip.accumulate);
        put<T>(sums + c, v * taken, true);
        if (call.in.gate.present) put<T>(sums + n + c, v * (load<T>(x + c) - load<T>(weight + c) * taken), true);
      });
    }
  }
}

void forward_rows(const LaneMix&, const Forward<LaneMix>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.lane0), begin = rows.begin * n;
  const float *lane0 = base_of(call.in.lane0) + begin, *lane1 = base_of(call.in.lane1) + begin;
  const float *attn = base_of(call.in.attn) + begin, *mlp = base_of(call.in.mlp) + begin;
  float *y0 = base_of(call.out.lane0) + begin, *y1 = base_of(call.out.lane1) + begin;
  const float *resid = base_of(call.in.resid), *post = base_of(call.in.post);
  const float r0 = resid[0], r1 = resid[1], a0 = post[0], a1 = post[1], f0 = post[2], f1 = post[3];
  for_columns((rows.end - rows.begin) * n, [&](int64_t c, auto t) {
    using T = decltype(t);
    const T a = load<T>(attn + c), f = load<T>(mlp + c);
    store(y0 + c, r0 * load<T>(lane0 + c) + a0 * a + f0 * f);
    store(y1 + c, r1 * load<T>(lane1 + c) + a1 * a + f1 * f);
  });
}

// Partials: dresid[0], dresid[1], dpost[0][0], dpost[0][1], dpost[1][0], dpost[1][1].
void backward_rows(const LaneMix&, const Backward<LaneMix>& call, RowRange rows, void* partials) {
  const int64_t n = columns_of(call.in.lane0);
  const float *resid = base_of(call.in.resid), *post = base_of(call.in.post);
  const float r0 = resid[0], r1 = resid[1], a0 = post[0], a1 = post[1], f0 = post[2], f1 = post[3];
  double sums[6] = {};
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float *lane0 = row_of(call.in.lane0, m, n), *lane1 = row_of(call.in.lane1, m, n);
    const float *attn = row_of(call.in.attn, m, n), *mlp = row_of(call.in.mlp, m, n);
    const float *g0 = row_of(call.dout.lane0, m, n), *g1 = row_of(call.dout.lane1, m, n);
    float *d0 = row_of(call.din.lane0, m, n), *d1 = row_of(call.din.lane1, m, n);
    float *da = row_of(call.din.attn, m, n), *df = row_of(call.din.mlp, m, n);
    for_columns(n, [&](int64_t c, auto t) {
      using T = decltype(t);
      const T v0 = g0 != nullptr ? load<T>(g0 + c) : T{}, v1 = g1 != nullptr ? load<T>(g1 + c) : T{};
      if (d0 != nullptr) put<T>(d0 + c, r0 * v0, call.din.lane0.accumulate);
      if (d1 != nullptr) put<T>(d1 + c, r1 * v1, call.din.lane1.accumulate);
      if (da != nullptr) put<T>(da + c, a0 * v0 + a1 * v1, call.din.attn.accumulate);
      if (df != nullptr) put<T>(df + c, f0 * v0 + f1 * v1, call.din.mlp.accumulate);
    });
    if (g0 != nullptr) sums[0] += wide_dot(g0, lane0, n), sums[2] += wide_dot(g0, attn, n), sums[4] += wide_dot(g0, mlp, n);
    if (g1 != nullptr) sums[1] += wide_dot(g1, lane1, n), sums[3] += wide_dot(g1, attn, n), sums[5] += wide_dot(g1, mlp, n);
  }
  for (int i = 0; i < 6; ++i) static_cast<double*>(partials)[i] = sums[i];
}

void forward_rows(const LaneMerge&, const Forward<LaneMerge>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.lane0), begin = rows.begin * n;
  const float *a = base_of(call.in.lane0) + begin, *b = base_of(call.in.lane1) + begin;
  float* y = base_of(call.out.y) + begin;
  for_columns((rows.end - rows.begin) * n,
              [&](int64_t c, auto t) { store(y + c, 0.5f * (load<decltype(t)>(a + c) + load<decltype(t)>(b + c))); });
}

void backward_rows(const LaneMerge&, const Backward<LaneMerge>& call, RowRange rows, void*) {
  const int64_t n = columns_of(call.in.lane0);
  const float* g = row_of(call.dout.y, rows.begin, n);
  float *d0 = row_of(call.din.lane0, rows.begin, n), *d1 = row_of(call.din.lane1, rows.begin, n);
  for_columns((rows.end - rows.begin) * n, [&](int64_t c, auto t) {
    using T = decltype(t);
    const T v = 0.5f * load<T>(g + c);
    if (d0 != nullptr) put<T>(d0 + c, v, call.din.lane0.accumulate);
    if (d1 != nullptr) put<T>(d1 + c, v, call.din.lane1.accumulate);
  });
}
