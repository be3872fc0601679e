// Included inside a namespace of its own by each instruction set. Loops over kWide run side by side; sums over them go in one
// fixed tree.

constexpr int kWide = 16;

// exp of x <= 0, to about 2 units of the last place (the polynomial of Cephes' expf); 0 below -87, and of what is no number.
static inline float exp_down(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5·2^23: adding it leaves a whole number in the low bits
  const bool kept = x >= -87.0F;
  const float y = kept ? x : 0.0F;
  const float moved = y * 1.44269504F + kRound;
  const float whole = moved - kRound;
  const float rest = (y - whole * 0.693359375F) - whole * -2.12194440e-4F;
  float sum = 1.9875691500e-4F;
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  sum = (sum * rest * rest + rest) + 1.0F;
  const int32_t exponent = (std::bit_cast<int32_t>(moved) - std::bit_cast<int32_t>(kRound) + 127) << 23;
  const float out = sum * std::bit_cast<float>(exponent);
  return kept ? out : 0.0F;
}

static inline float tree_sum(float* lanes) {
  for (int half = kWide / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

static float dot(const float* a, const float* b, int64_t count) {
  alignas(64) float lanes[kWide] = {};
  int64_t at = 0;
  for (; at + kWide <= count; at += kWide)
    for (int i = 0; i < kWide; ++i) lanes[i] += a[at + i] * b[at + i];
  for (int i = 0; at + i < count; ++i) lanes[i] += a[at + i] * b[at + i];
  return tree_sum(lanes);
}

static void softcap(float* logits, int64_t count, float cap) {
  const float inverse = 1.0F / cap;
  for (int64_t i = 0; i < count; ++i) {
    const float x = logits[i] * inverse, size = x < 0 ? -x : x;
    const float small = exp_down(-2.0F * size), capped = (1.0F - small) / (1.0F + small) * cap;
    logits[i] = x < 0 ? -capped : x >= 0 ? capped : x;
  }
}

static float largest(const float* x, int64_t count) {
  alignas(64) float lanes[kWide];
  for (float& lane : lanes) lane = -3.0e38F;
  int64_t at = 0;
  for (; at + kWide <= count; at += kWide)
    for (int i = 0; i < kWide; ++i) lanes[i] = x[at + i] > lanes[i] ? x[at + i] : lanes[i];
  for (; at < count; ++at) lanes[0] = x[at] > lanes[0] ? x[at] : lanes[0];
  float top = lanes[0];
  for (const float lane : lanes) top = lane > top ? lane : top;
  return top;
}

static uint64_t weigh(const float* logits, int64_t count, uint32_t* weights) {
  const float top = largest(logits, count);
  for (int64_t i = 0; i < count; ++i) {
    const float down = logits[i] - top;
    weights[i] = 1U + static_cast<uint32_t>(static_cast<int32_t>(exp_down(down <= 0 ? down : -100.0F) * kWeightScale));
  }
  uint64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += weights[i];
  return total;
}

// Scores of the sixteen keys of a block.
static inline void score_block(const float* q, const float* keys, int64_t size, float scale, float* scores) {
  alignas(64) float sums[kWide] = {};
  for (int64_t e = 0; e < size; ++e)
    for (int i = 0; i < kWide; ++i) sums[i] += q[e] * keys[e * kWide + i];
  for (int i = 0; i < kWide; ++i) scores[i] = sums[i] * scale;
}

// y[0..kChannels) += Σ p[t]·values[t], t in order.
template <int kChannels>
static inline void add_values(const float* p, const float* values, int64_t size, int64_t count, float* y) {
  float sums[kChannels];
  for (int i = 0; i < kChannels; ++i) sums[i] = y[i];
  for (int64_t t = 0; t < count; ++t)
    for (int i = 0; i < kChannels; ++i) sums[i] += p[t] * values[t * size + i];
  for (int i = 0; i < kChannels; ++i) y[i] = sums[i];
}

static void attend(const AttendArgs& a) {
  constexpr int64_t kTile = 32;  // values that all heads of the group use while they are in the nearest cache
  const int64_t size = a.size, count = a.position + 1, blocks = (count + kWide - 1) / kWide;
  for (int64_t e = 0; e < size; ++e) {
    a.keys[(a.position / kWide * size + e) * kWide + a.position % kWide] = a.k[e];
    a.values[a.position * size + e] = a.v[e];
  }
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t g = 0; g < a.group; ++g)
      score_block(a.q + g * size, a.keys + b * size * kWide, size, a.scale, a.scores + g * a.room + b * kWide);
  for (int64_t g = 0; g < a.group; ++g) {
    float* p = a.scores + g * a.room;
    const float top = largest(p, count);
    alignas(64) float lanes[kWide] = {};
    for (int64_t t = count; t < blocks * kWide; ++t) p[t] = -3.0e38F;
    for (int64_t b = 0; b < blocks; ++b)
      for (int i = 0; i < kWide; ++i) {
        const float weight = exp_down(p[b * kWide + i] - top);
        p[b * kWide + i] = weight;
        lanes[i] += weight;
      }
    const float inverse = 1.0F / tree_sum(lanes);
    for (int64_t t = 0; t < count; ++t) p[t] *= inverse;
    for (int64_t e = 0; e < size; ++e) a.y[g * size + e] = 0;
  }
  for (int64_t t = 0; t < count; t += kTile)
    for (int64_t g = 0; g < a.group; ++g) {
      const float *p = a.scores + g * a.room + t, *values = a.values + t * size;
      const int64_t tile = count - t < kTile ? count - t : kTile;
      float* y = a.y + g * size;
      int64_t e = 0;
      for (; e + 64 <= size; e += 64) add_values<64>(p, values + e, size, tile, y + e);
      for (; e + kWide <= size; e += kWide) add_values<kWide>(p, values + e, size, tile, y + e);
      for (; e < size; ++e) add_values<1>(p, values + e, size, tile, y + e);
    }
}
