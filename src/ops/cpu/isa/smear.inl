// SmearGate and SmearGateInput: each row looks at the row before it (forward) or after it (backward), read-only, so rows can
// be split between threads anywhere.

// y_t = (1−g)⊙u_t + g⊙u_{t−1}.
void forward_rows(const SmearGate& op, const Forward<SmearGate>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.u);
  for (int64_t first = 0; first < n; first += kGateBlock) {
    const int64_t count = min64(n - first, kGateBlock);
    float gate[kGateBlock];
    map<sigmoid_of>(base_of(call.in.gate) + first, gate, count);
    for (int64_t m = rows.begin; m < rows.end; ++m) {
      const float* u = row_of(call.in.u, m, n) + first;
      const float* before = m % op.row_length != 0 ? u - n : nullptr;
      float* y = row_of(call.out.y, m, n) + first;
      for_columns(count, [&](int64_t c, auto t) {
        using T = decltype(t);
        const T g = load<T>(gate + c), old = before != nullptr ? load<T>(before + c) : T{};
        store<T>(y + c, (1.0f - g) * load<T>(u + c) + g * old);
      });
    }
  }
}

// du_t = (1−γ)⊙g_t + γ⊙g_{t+1}; partial: Σ g_t⊙(u_{t−1} − u_t).
void backward_rows(const SmearGate& op, const Backward<SmearGate>& call, RowRange rows, void* partials) {
  const int64_t n = columns_of(call.in.u);
  fill_zero(static_cast<float*>(partials), n);
  for (int64_t first = 0; first < n; first += kGateBlock) {
    const int64_t count = min64(n - first, kGateBlock);
    float gate[kGateBlock], *sums = static_cast<float*>(partials) + first;
    map<sigmoid_of>(base_of(call.in.gate) + first, gate, count);
    for (int64_t m = rows.begin; m < rows.end; ++m) {
      const int64_t at = m * n + first;
      const float *u = base_of(call.in.u) + at, *g = base_of(call.dout.y) + at;
      const float* before = m % op.row_length != 0 ? u - n : nullptr;
      const float* after = (m + 1) % op.row_length != 0 ? g + n : nullptr;
      float* du = call.din.u.present ? base_of(call.din.u) + at : nullptr;
      for_columns(count, [&](int64_t c, auto t) {
        using T = decltype(t);
        const T v = load<T>(g + c), open = load<T>(gate + c);
        const T old = before != nullptr ? load<T>(before + c) : T{}, next = after != nullptr ? load<T>(after + c) : T{};
        put<T>(sums + c, v * (old - load<T>(u + c)), true);
        if (du != nullptr) put<T>(du + c, (1.0f - open) * v + open * next, call.din.u.accumulate);
      });
    }
  }
}

FAIRWAY_INLINE bool smears(const SmearGateInput& op, const int32_t* tokens, int64_t m) {
  return m % op.row_length != 0 && tokens[m] != op.bos;
}

FAIRWAY_INLINE double smear_opening(const float* weight, const float* e, int64_t width) {
  return 1.0 / (1.0 + __builtin_exp(-wide_dot(weight, e, width)));
}

void forward_rows(const SmearGateInput& op, const Forward<SmearGateInput>& call, RowRange rows) {
  const int64_t n = columns_of(call.in.e), width = columns_of(call.in.weight);
  const double lambda = *base_of(call.in.lambda);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float* e = row_of(call.in.e, m, n);
    float* y = row_of(call.out.y, m, n);
    if (!smears(op, indices_of(call.in.tokens), m)) {
      for_columns(n, [&](int64_t c, auto t) { store(y + c, load<decltype(t)>(e + c)); });
      continue;
    }
    const float share = static_cast<float>(lambda * smear_opening(base_of(call.in.weight), e, width));
    for_columns(n, [&](int64_t c, auto t) {
      using T = decltype(t);
      store<T>(y + c, load<T>(e + c) + share * load<T>(e - n + c));
    });
  }
}

// With s the opening of row t and c_t = g_t·e_{t−1}: de_t = g_t + λ s_{t+1} g_{t+1} + [first W] λ s(1−s) c_t w;
// partials: dw (W), then dλ.
void backward_rows(const SmearGateInput& op, const Backward<SmearGateInput>& call, RowRange rows, void* partials) {
  const int64_t n = columns_of(call.in.e), width = columns_of(call.in.weight);
  const int32_t* tokens = indices_of(call.in.tokens);
  const float* weight = base_of(call.in.weight);
  const double lambda = *base_of(call.in.lambda);
  double* sums = static_cast<double*>(partials);
  for (int64_t w = 0; w <= width; ++w) sums[w] = 0;
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float *e = row_of(call.in.e, m, n), *g = row_of(call.dout.y, m, n);
    float* de = row_of(call.din.e, m, n);
    double slope = 0;
    if (smears(op, tokens, m)) {
      const double s = smear_opening(weight, e, width), along = wide_dot(g, e - n, n);
      slope = lambda * s * (1.0 - s) * along;
      sums[width] += s * along;
      for (int64_t w = 0; w < width; ++w) sums[w] += slope * e[w];
    }
    if (de == nullptr) continue;
    const bool feeds_next = smears(op, tokens, m + 1);  // false after the last row, where a sequence ends
    const float share = feeds_next ? static_cast<float>(lambda * smear_opening(weight, e + n, width)) : 0.0f;
    for_columns(n, [&](int64_t c, auto t) {
      using T = decltype(t);
      T v = load<T>(g + c);
      if (feeds_next) v += share * load<T>(g + n + c);
      put<T>(de + c, v, call.din.e.accumulate);
    });
    for (int64_t w = 0; w < width; ++w) de[w] += static_cast<float>(slope * weight[w]);
  }
}
