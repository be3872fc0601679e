// Softcap, log-sum-exp and their gradient on rows of logits.

// Replaces a row's logits ℓ by z = cap·tanh(ℓ/cap) and returns its log-sum-exp. |z| <= cap, so up to a cap of 40 the
// exponentials of a row and their sum fit in a float as they are; larger caps subtract the cap, which costs range below.
double softcap_row(float* row, int64_t count, float cap) {
  const float inverse = 1.0f / cap, shift = cap <= 40.0f ? 0.0f : cap;
  vec sums{};
  int64_t c = 0;
  // Most logits lie where tanh needs neither an exponential nor a division; a stretch of them is asked at once.
  constexpr int kAtOnce = 8;
  for (; c + kAtOnce * kLanes <= count; c += kAtOnce * kLanes) {
    vec largest{};
    for (int i = 0; i < kAtOnce; ++i) largest = vmax(vabs(load(row + c + i * kLanes)), largest);
    float top = 0;
    for (int lane = 0; lane < kLanes; ++lane) top = largest[lane] > top ? largest[lane] : top;
    const bool near = top * inverse < kTanhNear;
    for (int64_t at = c; at < c + kAtOnce * kLanes; at += kLanes) {
      const vec x = inverse * load(row + at), z = cap * (near ? vtanh_near(x) : vtanh(x));
      store(row + at, z);
      sums += vexp(z - shift);
    }
  }
  for (; c < count; c += kLanes) {
    const vec z = cap * vtanh(inverse * load_first(row + c, count - c));
    store_first(row + c, z, count - c);
    vec e = vexp(z - shift);
    for (int64_t i = count - c; i < kLanes; ++i) e[i] = 0;
    sums += e;
  }
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += sums[lane];
  return __builtin_log(total) + static_cast<double>(shift);
}

// Σ p·z.
double expectation_of_row(const float* row, const float* shares, int64_t count) {
  double total = 0;
  for (int64_t c = 0; c < count; c += kLanes) {
    const vec part = load_first(row + c, count - c) * load_first(shares + c, count - c);
    float sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += part[lane];
    total += static_cast<double>(sum);
  }
  return total;
}

// dℓ = (exp(z − lse) − [target] or p)·(1 − (z/cap)²)·factor.
void softcap_row_grad(const float* row, float* grad, const SoftcapRow& at) {
  const float inverse = 1.0f / at.cap;
  for (int64_t c = 0; c < at.count; c += kLanes) {
    const vec z = load_first(row + c, at.count - c), t = inverse * z;
    const vec wanted = at.expected != nullptr ? load_first(at.expected + c, at.count - c) : vec{};
    store_first(grad + c, (vexp(z - at.lse) - wanted) * ((1.0f - t * t) * at.factor), at.count - c);
  }
  if (at.expected != nullptr) return;
  const float t = inverse * row[at.target];
  grad[at.target] -= (1.0f - t * t) * at.factor;
}
