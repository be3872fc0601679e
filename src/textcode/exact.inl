// Included inside a namespace of its own by each instruction set. Sixteen floats side by side are one value of the compiler's
// vector type, which every machine has in registers of its own size; sums over them go in one fixed tree.

constexpr int kWide = 16;
using Wide = float __attribute__((vector_size(64)));
using WideInt = int32_t __attribute__((vector_size(64)));
using LooseWide = float __attribute__((vector_size(64), aligned(4), may_alias));

static inline Wide load(const float* p) { return *reinterpret_cast<const LooseWide*>(p); }
static inline void store(float* p, Wide value) { *reinterpret_cast<LooseWide*>(p) = value; }
static inline Wide spread(float x) { return Wide{} + x; }

// Fewer than sixteen, and something else behind them.
static inline Wide load_some(const float* p, int64_t count, float rest) {
  Wide out = spread(rest);
  for (int64_t i = 0; i < count; ++i) out[i] = p[i];
  return out;
}

// exp of x <= 0, to about 2 units of the last place (the polynomial of Cephes' expf); 0 below -87, and of what is no number.
static inline Wide exp_down(Wide x) {
  const Wide round = spread(12582912.0F);  // 1.5·2^23: adding it leaves a whole number in the low bits
  const WideInt kept = x >= -87.0F;
  const Wide y = kept ? x : Wide{};
  const Wide moved = y * 1.44269504F + round;
  const Wide whole = moved - round;
  const Wide rest = (y - whole * 0.693359375F) - whole * -2.12194440e-4F;
  Wide sum = spread(1.9875691500e-4F);
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  sum = (sum * rest * rest + rest) + 1.0F;
  const WideInt power = (std::bit_cast<WideInt>(moved) - std::bit_cast<WideInt>(round) + 127) << 23;
  const Wide out = sum * std::bit_cast<Wide>(power);
  return kept ? out : Wide{};
}

static inline float tree_sum(Wide lanes) {
  for (int half = kWide / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

static float dot(const float* a, const float* b, int64_t count) {
  Wide sums{};
  int64_t at = 0;
  for (; at + kWide <= count; at += kWide) sums += load(a + at) * load(b + at);
  if (at < count) sums += load_some(a + at, count - at, 0) * load_some(b + at, count - at, 0);
  return tree_sum(sums);
}

static inline Wide capped(Wide logits, float cap) {
  const Wide x = logits * (1.0F / cap);
  const Wide small = exp_down((x < 0.0F ? x : -x) * 2.0F), size = (1.0F - small) / (1.0F + small) * cap;
  return x < 0.0F ? -size : x >= 0.0F ? size : x;
}

static void softcap(float* logits, int64_t count, float cap) {
  int64_t at = 0;
  for (; at + kWide <= count; at += kWide) store(logits + at, capped(load(logits + at), cap));
  if (at == count) return;
  const Wide last = capped(load_some(logits + at, count - at, 0), cap);
  for (int64_t i = 0; at + i < count; ++i) logits[at + i] = last[i];
}

constexpr float kLowest = -3.0e38F;

static float largest(const float* x, int64_t count) {
  Wide tops = spread(kLowest);
  const auto take = [&](Wide next) { tops = next > tops ? next : tops; };
  int64_t at = 0;
  for (; at + kWide <= count; at += kWide) take(load(x + at));
  if (at < count) take(load_some(x + at, count - at, kLowest));
  float top = tops[0];
  for (int i = 1; i < kWide; ++i) top = tops[i] > top ? tops[i] : top;
  return top;
}

static uint64_t weigh(const float* logits, int64_t count, uint32_t* weights) {
  const float top = largest(logits, count);
  uint64_t total = 0;
  for (int64_t at = 0; at < count; at += kWide) {
    const int64_t some = count - at < kWide ? count - at : kWide;
    const Wide down = (some == kWide ? load(logits + at) : load_some(logits + at, some, kLowest)) - top;
    const WideInt parts = __builtin_convertvector(exp_down(down <= 0.0F ? down : spread(-100.0F)) * kWeightScale, WideInt) + 1;
    for (int64_t i = 0; i < some; ++i) total += weights[at + i] = static_cast<uint32_t>(parts[i]);
  }
  return total;
}

// Scores of the keys of some blocks: several sums at once hide the latency of one.
template <int kBlocks>
static inline void score_blocks(const float* q, const float* keys, int64_t size, float scale, float* scores) {
  Wide sums[kBlocks] = {};
  for (int64_t e = 0; e < size; ++e)
    for (int b = 0; b < kBlocks; ++b) sums[b] += q[e] * load(keys + (b * size + e) * kWide);
  for (int b = 0; b < kBlocks; ++b) store(scores + b * kWide, sums[b] * scale);
}

// y[0..kWide·kVectors) += Σ p[t]·values[t], t in order.
template <int kVectors>
static inline void add_values(const float* p, const float* values, int64_t size, int64_t count, float* y) {
  Wide sums[kVectors];
  for (int i = 0; i < kVectors; ++i) sums[i] = load(y + i * kWide);
  for (int64_t t = 0; t < count; ++t)
    for (int i = 0; i < kVectors; ++i) sums[i] += p[t] * load(values + t * size + i * kWide);
  for (int i = 0; i < kVectors; ++i) store(y + i * kWide, sums[i]);
}

static void softmax(float* p, int64_t count) {
  const Wide top = spread(largest(p, count));
  Wide sums{};
  for (int64_t t = count; t % kWide != 0; ++t) p[t] = kLowest;
  for (int64_t t = 0; t < count; t += kWide) {
    const Wide weights = exp_down(load(p + t) - top);
    store(p + t, weights);
    sums += weights;
  }
  const float inverse = 1.0F / tree_sum(sums);
  for (int64_t t = 0; t < count; t += kWide) store(p + t, load(p + t) * inverse);
}

static void score_keys(const AttendArgs& a, int64_t blocks) {
  constexpr int kAtOnce = 4;
  const auto keys = [&](int64_t b) { return a.keys + b * a.size * kWide; };
  int64_t b = 0;
  for (; b + kAtOnce <= blocks; b += kAtOnce)
    for (int64_t g = 0; g < a.group; ++g)
      score_blocks<kAtOnce>(a.q + g * a.size, keys(b), a.size, a.scale, a.scores + g * a.room + b * kWide);
  for (; b < blocks; ++b)
    for (int64_t g = 0; g < a.group; ++g)
      score_blocks<1>(a.q + g * a.size, keys(b), a.size, a.scale, a.scores + g * a.room + b * kWide);
}

// Channels [e, e + …) of y += Σ p[t]·values[t] over a tile of values.
static void add_tile(const float* p, const float* values, int64_t size, int64_t count, float* y) {
  int64_t e = 0;
  for (; e + 4 * kWide <= size; e += 4 * kWide) add_values<4>(p, values + e, size, count, y + e);
  for (; e + kWide <= size; e += kWide) add_values<1>(p, values + e, size, count, y + e);
  for (; e < size; ++e)
    for (int64_t t = 0; t < count; ++t) y[e] += p[t] * values[t * size + e];
}

static void attend(const AttendArgs& a) {
  constexpr int64_t kTile = 32;  // values that all heads of the group use while they are in the nearest cache
  const int64_t size = a.size, count = a.position + 1;
  for (int64_t e = 0; e < size; ++e) {
    a.keys[(a.position / kWide * size + e) * kWide + a.position % kWide] = a.k[e];
    a.values[a.position * size + e] = a.v[e];
  }
  score_keys(a, (count + kWide - 1) / kWide);
  for (int64_t g = 0; g < a.group; ++g) {
    softmax(a.scores + g * a.room, count);
    for (int64_t e = 0; e < size; ++e) a.y[g * size + e] = 0;
  }
  for (int64_t t = 0; t < count; t += kTile)
    for (int64_t g = 0; g < a.group; ++g)
      add_tile(a.scores + g * a.room + t, a.values + t * size, size, count - t < kTile ? count - t : kTile, a.y + g * size);
}
