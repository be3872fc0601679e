// Per-head work on rows of attention inputs and outputs: QkNormRope, HeadOutput.

struct Rotation {
  const float *cosines, *sines;  // (half) of one position
  int64_t half;
};

FAIRWAY_INLINE Rotation rotation_at(const QkNormRope& op, const Tensor& rope, int64_t m) {
  const int64_t rotated = columns_of(rope);
  const float* row = row_of(rope, m % op.row_length, rotated);
  return {row, row + rotated / 2, rotated / 2};
}

// y = gain·R(x·rstd) over one head; returns rstd.
FAIRWAY_INLINE float rotate_head(const float* x, float* y, int64_t size, const Rotation& at, float gain, double eps) {
  Sum squares;
  for_columns(size, [&](int64_t c, auto t) {
    const auto v = load<decltype(t)>(x + c);
    squares.add(v * v);
  });
  const float r = inverse_rms(squares.total(), size, eps), factor = gain * r;
  const int64_t half = at.half, rest = 2 * half;
  for_columns(half, [&](int64_t c, auto t) {
    using T = decltype(t);
    const T a = factor * load<T>(x + c), b = factor * load<T>(x + half + c);
    const T cosine = load<T>(at.cosines + c), sine = load<T>(at.sines + c);
    store<T>(y + c, a * cosine + b * sine);
    store<T>(y + half + c, b * cosine - a * sine);
  });
  for_columns(size - rest, [&](int64_t c, auto t) { store(y + rest + c, factor * load<decltype(t)>(x + rest + c)); });
  return r;
}

// With t = Rᵀg: dx = gain·r·(t − x̂ (t·x̂)/E), x̂ = x·r. Returns t·x̂, the gradient of the gain.
FAIRWAY_INLINE float rotate_head_back(const float* x, const float* g, float* dx, bool add, int64_t size, const Rotation& at,
                                      float gain, float r) {
  const int64_t half = at.half, rest = 2 * half;
  Sum sum;
  for_columns(half, [&](int64_t c, auto t) {
    using T = decltype(t);
    const T a = load<T>(g + c), b = load<T>(g + half + c), cosine = load<T>(at.cosines + c), sine = load<T>(at.sines + c);
    sum.add((a * cosine - b * sine) * load<T>(x + c) + (a * sine + b * cosine) * load<T>(x + half + c));
  });
  for_columns(size - rest,
              [&](int64_t c, auto t) { sum.add(load<decltype(t)>(g + rest + c) * load<decltype(t)>(x + rest + c)); });
  const float dot = sum.total() * r;
  if (dx == nullptr) return dot;
  const float factor = gain * r, along = dot * r / static_cast<float>(size);
  for_columns(half, [&](int64_t c, auto t) {
    using T = decltype(t);
    const T a = load<T>(g + c), b = load<T>(g + half + c), cosine = load<T>(at.cosines + c), sine = load<T>(at.sines + c);
    put<T>(dx + c, factor * (a * cosine - b * sine - along * load<T>(x + c)), add);
    put<T>(dx + half + c, factor * (a * sine + b * cosine - along * load<T>(x + half + c)), add);
  });
  for_columns(size - rest, [&](int64_t c, auto t) {
    using T = decltype(t);
    put<T>(dx + rest + c, factor * (load<T>(g + rest + c) - along * load<T>(x + rest + c)), add);
  });
  return dot;
}

void forward_rows(const QkNormRope& op, const Forward<QkNormRope>& call, RowRange rows) {
  const int64_t size = op.head_dim, heads = columns_of(call.in.q) / size, kv_heads = columns_of(call.in.k) / size;
  const float* gain = base_of(call.in.gain);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const Rotation at = rotation_at(op, call.in.rope, m);
    for (int64_t h = m * heads, i = 0; i < heads; ++h, ++i)
      base_of(call.saved.rstd_q)[h] =
          rotate_head(base_of(call.in.q) + h * size, base_of(call.out.q) + h * size, size, at, gain[i], op.eps);
    for (int64_t h = m * kv_heads; h < (m + 1) * kv_heads; ++h)
      base_of(call.saved.rstd_k)[h] =
          rotate_head(base_of(call.in.k) + h * size, base_of(call.out.k) + h * size, size, at, 1.0f, op.eps);
  }
}

// Partials: dgain (H).
void backward_rows(const QkNormRope& op, const Backward<QkNormRope>& call, RowRange rows, void* partials) {
  const int64_t size = op.head_dim, heads = columns_of(call.in.q) / size, kv_heads = columns_of(call.in.k) / size;
  const float* gain = base_of(call.in.gain);
  double* sums = static_cast<double*>(partials);
  for (int64_t i = 0; i < heads; ++i) sums[i] = 0;
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const Rotation at = rotation_at(op, call.in.rope, m);
    if (call.dout.q.present)
      for (int64_t h = m * heads, i = 0; i < heads; ++h, ++i)
        sums[i] += rotate_head_back(row_of(call.in.q, h, size), row_of(call.dout.q, h, size), row_of(call.din.q, h, size),
                                    call.din.q.accumulate, size, at, gain[i], base_of(call.saved.rstd_q)[h]);
    else if (call.din.q.present && !call.din.q.accumulate)
      fill_zero(row_of(call.din.q, m, heads * size), heads * size);
    if (call.dout.k.present && call.din.k.present)
      for (int64_t h = m * kv_heads; h < (m + 1) * kv_heads; ++h)
        rotate_head_back(row_of(call.in.k, h, size), row_of(call.dout.k, h, size), row_of(call.din.k, h, size),
                         call.din.k.accumulate, size, at, 1.0f, base_of(call.saved.rstd_k)[h]);
    else if (call.din.k.present && !call.din.k.accumulate)
      fill_zero(row_of(call.din.k, m, kv_heads * size), kv_heads * size);
  }
}

FAIRWAY_INLINE float dot_of(const float* a, const float* b, int64_t n) {
  Sum sum;
  for_columns(n, [&](int64_t c, auto t) { sum.add(load<decltype(t)>(a + c) * load<decltype(t)>(b + c)); });
  return sum.total();
}

constexpr float kInverseFloor = 1e12f;

// 1/max(‖v‖, 1e-12); the square of a tiny v may vanish in float, so the root is taken in double.
FAIRWAY_INLINE float inverse_norm(const float* v, int64_t size) {
  const double norm = __builtin_sqrt(static_cast<double>(dot_of(v, v, size)));
  return static_cast<float>(1.0 / (norm > 1e-12 ? norm : 1e-12));
}

constexpr float kGateScale = static_cast<float>(HeadOutput::kGateScale);

// s_h of head h of all rows.
FAIRWAY_INLINE float open_of(const HeadOutput::In& in, int64_t h) {
  return in.logit.present ? vsigmoid(vec{} + kGateScale * base_of(in.logit)[h])[0] : 1.0f;
}

void forward_rows(const HeadOutput& op, const Forward<HeadOutput>& call, RowRange rows) {
  const int64_t size = columns_of(call.in.y) / op.heads, group = op.heads / op.kv_heads;
  for (int64_t k = rows.begin * op.kv_heads; k < rows.end * op.kv_heads; ++k) {
    const float* v = row_of(call.in.v, k, size);
    const float inverse = v != nullptr ? inverse_norm(v, size) : 0;
    for (int64_t h = k * group; h < (k + 1) * group; ++h) {
      const float *y = base_of(call.in.y) + h * size, s = open_of(call.in, h);
      float* z = base_of(call.out.z) + h * size;
      const float dot = v != nullptr ? dot_of(y, v, size) * inverse : 0, along = dot * inverse;
      base_of(call.saved.dot)[h] = dot;
      for_columns(size, [&](int64_t c, auto t) {
        using T = decltype(t);
        store<T>(z + c, v != nullptr ? s * (load<T>(y + c) - along * load<T>(v + c)) : s * load<T>(y + c));
      });
    }
  }
}

// c = y·u: dy = s(g − q u), dv = −(1/‖v‖) Σ_h [q z + c s (g − q u)]; where the norm is clamped and so a constant,
// c s (g + q u) instead. dlogit = ½(1−s)(g·z).
void backward_rows(const HeadOutput& op, const Backward<HeadOutput>& call, RowRange rows, void*) {
  const int64_t size = columns_of(call.in.y) / op.heads, group = op.heads / op.kv_heads;
  for (int64_t k = rows.begin * op.kv_heads; k < rows.end * op.kv_heads; ++k) {
    const float* v = row_of(call.in.v, k, size);
    float* dv = row_of(call.din.v, k, size);
    const float inverse = v != nullptr ? inverse_norm(v, size) : 0;
    for (int64_t h = k * group; h < (k + 1) * group; ++h) {
      const float *g = base_of(call.dout.z) + h * size, *z = base_of(call.out.z) + h * size;
      const float s = open_of(call.in, h);
      if (call.din.logit.present) put(base_of(call.din.logit) + h, kGateScale * (1 - s) * dot_of(g, z, size), call.din.logit.accumulate);
      float* dy = row_of(call.din.y, h, size);
      if (v == nullptr) {
        for_columns(size, [&](int64_t c, auto t) {
          using T = decltype(t);
          if (dy != nullptr) put<T>(dy + c, s * load<T>(g + c), call.din.y.accumulate);
        });
        continue;
      }
      const float q = dot_of(g, v, size) * inverse, along = q * inverse;
      const float from_z = -inverse * q, from_g = -inverse * base_of(call.saved.dot)[h] * s;
      const float back = inverse < kInverseFloor ? -along : along;
      const bool add_v = call.din.v.accumulate || h != k * group;
      for_columns(size, [&](int64_t c, auto t) {
        using T = decltype(t);
        const T gradient = load<T>(g + c), value = load<T>(v + c);
        if (dy != nullptr) put<T>(dy + c, s * (gradient - along * value), call.din.y.accumulate);
        if (dv != nullptr) put<T>(dv + c, from_z * load<T>(z + c) + from_g * (gradient + back * value), add_v);
      });
    }
  }
}
