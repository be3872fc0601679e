// RmsNorm and MixNorm, a row at a time: two passes over a row that stays in the first-level cache, one over memory.

void forward_rows(const RmsNorm& op, const Forward<RmsNorm>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.x);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float* x = row_of(call.in.x, m, n);
    float* y = row_of(call.out.y, m, n);
    Sum squares;
    for_columns(n, [&](int64_t c, auto t) {
      const auto v = load<decltype(t)>(x + c);
      squares.add(v * v);
    });
    const float r = inverse_rms(squares.total(), n, op.eps);
    base_of(call.saved.rstd)[m] = r;
    const float factor = static_cast<float>(op.scale) * r;
    for_columns(n, [&](int64_t c, auto t) { store(y + c, factor * load<decltype(t)>(x + c)); });
  }
}

void backward_rows(const RmsNorm& op, const Backward<RmsNorm>& call, RowRange rows, void*) {
  const int64_t n = columns_of(call.in.x);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float* x = row_of(call.in.x, m, n);
    const float* g = row_of(call.dout.y, m, n);
    float* dx = row_of(call.din.x, m, n);
    Sum dot;
    for_columns(n, [&](int64_t c, auto t) { dot.add(load<decltype(t)>(x + c) * load<decltype(t)>(g + c)); });
    const float r = base_of(call.saved.rstd)[m];
    const float factor = static_cast<float>(op.scale) * r;
    const float along = r * r * dot.total() / static_cast<float>(n);
    for_columns(n, [&](int64_t c, auto t) {
      using T = decltype(t);
      if (dx != nullptr) put<T>(dx + c, factor * (load<T>(g + c) - along * load<T>(x + c)), call.din.x.accumulate);
    });
  }
}

void forward_rows(const MixNorm& op, const Forward<MixNorm>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.x);
  const float* mix = base_of(call.in.mix);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float* x = row_of(call.in.x, m, n);
    const float* x0 = row_of(call.in.x0, m, n);
    float* mixed = row_of(call.out.mixed, m, n);
    float* normed = row_of(call.out.normed, m, n);
    Sum squares;
    for_columns(n, [&](int64_t c, auto t) {
      using T = decltype(t);
      const T v = load<T>(mix + c) * load<T>(x + c) + load<T>(mix + n + c) * load<T>(x0 + c);
      store(mixed + c, v);
      squares.add(v * v);
    });
    const float r = inverse_rms(squares.total(), n, op.eps);
    base_of(call.saved.rstd)[m] = r;
    const float factor = static_cast<float>(op.scale) * r;
    for_columns(n, [&](int64_t c, auto t) { store(normed + c, factor * load<decltype(t)>(mixed + c)); });
  }
}

// With g the gradient of mixed (its own and what comes through the norm): dx = mix0⊙g, dx0 = mix1⊙g; partials: Σ g⊙x, Σ g⊙x0.
void backward_rows(const MixNorm& op, const Backward<MixNorm>& call, RowRange rows, void* partials) {
  const int64_t n = columns_of(call.in.x);
  const float* mix = base_of(call.in.mix);
  float* sums = static_cast<float*>(partials);
  fill_zero(sums, 2 * n);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float *x = row_of(call.in.x, m, n), *x0 = row_of(call.in.x0, m, n);
    const float *g_mixed = row_of(call.dout.mixed, m, n), *g_normed = row_of(call.dout.normed, m, n);
    float *dx = row_of(call.din.x, m, n), *dx0 = row_of(call.din.x0, m, n);
    const auto mixed = [&](int64_t c, auto t) {
      using T = decltype(t);
      return load<T>(mix + c) * load<T>(x + c) + load<T>(mix + n + c) * load<T>(x0 + c);
    };
    Sum dot;
    if (g_normed != nullptr)
      for_columns(n, [&](int64_t c, auto t) { dot.add(mixed(c, t) * load<decltype(t)>(g_normed + c)); });
    const float r = base_of(call.saved.rstd)[m];
    const float factor = static_cast<float>(op.scale) * r;
    const float along = r * r * dot.total() / static_cast<float>(n);
    for_columns(n, [&](int64_t c, auto t) {
      using T = decltype(t);
      T g{};
      if (g_normed != nullptr) g = factor * (load<T>(g_normed + c) - along * mixed(c, t));
      if (g_mixed != nullptr) g += load<T>(g_mixed + c);
      if (dx != nullptr) put<T>(dx + c, load<T>(mix + c) * g, call.din.x.accumulate);
      if (dx0 != nullptr) put<T>(dx0 + c, load<T>(mix + n + c) * g, call.din.x0.accumulate);
      put<T>(sums + c, g * load<T>(x + c), true);
      put<T>(sums + n + c, g * load<T>(x0 + c), true);
    });
  }
}
