// Included inside a namespace of its own by each instruction set. Sixteen floats side by side are one value of the compiler's
// vector type, which every machine has in registers of its own size; sums over them go in one fixed tree. Sums of integers
// are those of exact_words.inl.

#include "textcode/exact_words.inl"

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

static float largest_size(const float* x, int64_t count) {
  Wide tops{};
  const auto take = [&](Wide next) {
    const Wide sizes = next < 0.0F ? -next : next;
    tops = sizes > tops ? sizes : tops;
  };
  int64_t at = 0;
  for (; at + kWide <= count; at += kWide) take(load(x + at));
  if (at < count) take(load_some(x + at, count - at, 0));
  float top = 0;
  for (int i = 0; i < kWide; ++i) top = tops[i] > top ? tops[i] : top;
  return top;
}

// Whole numbers of a unit: x ≈ unit·n with |n| <= most. Of numbers that are not finite the unit is none.
struct Grid {
  float unit = 0, inverse = 0;
  Grid(float top, float most) : unit(top / most), inverse(top > 1e-30F && top < 3e38F ? most / top : 0) {
    if (!(top < 3e38F)) unit = top - top;
  }
};
static inline int32_t whole(float x, float inverse, float most) {
  float n = x * inverse;
  n = n < most ? n : most;
  n = n > -most ? n : -most;
  return static_cast<int32_t>(n + (n < 0 ? -0.5F : 0.5F));
}

// Scores of a few blocks of keys for some heads: several sums at once hide the latency of one, and heads share the reading.
template <int kBlocks, int kHeads>
static inline void score_blocks(const AttendArgs& a, const WholeQuery* q, int64_t block, int64_t head) {
  PairSums sums[kHeads][kBlocks] = {};
  const int64_t pairs = a.padded / 2;
  for (int64_t pair = 0; pair < pairs; ++pair)
    for (int b = 0; b < kBlocks; ++b) {
      const int16_t* at = a.keys + ((block + b) * pairs + pair) * 2 * kWide;
      __builtin_prefetch(at + kBlocks * pairs * 2 * kWide);  // the hardware's own prefetching stops at every page
      const Words keys = load_words(at);
      for (int h = 0; h < kHeads; ++h) sums[h][b].add(keys, pair_at(q[head + h].n + 2 * pair));
    }
  for (int h = 0; h < kHeads; ++h)
    for (int b = 0; b < kBlocks; ++b) {
      const Wide scale = load(a.key_units + (block + b) * kWide) * (q[head + h].unit * a.scale);
      store(a.scores + (head + h) * a.room + (block + b) * kWide, floats(sums[h][b]) * scale);
    }
}

template <int kHeads>
static void score_keys(const AttendArgs& a, const WholeQuery* q, int64_t blocks, int64_t head) {
  int64_t b = 0;
  for (; b + kAtOnce <= blocks; b += kAtOnce) score_blocks<kAtOnce, kHeads>(a, q, b, head);
  for (; b < blocks; ++b) score_blocks<1, kHeads>(a, q, b, head);
}

// Weights of a tile of positions times the units of their values, as whole numbers of a unit of the tile's own: where one
// position takes nearly all of the attention, those of other tiles keep their digits.
struct TileWeights {
  int16_t n[kTilePositions];
  float unit;
};

// Sixteen channels, kVectors times, of y of some heads += Σ weight[t]·value[t] over positions [first, first + 2·pairs).
template <int kVectors, int kHeads>
static inline void add_channels(const AttendArgs& a, const TileWeights* w, int64_t head, int64_t first, int64_t pairs,
                                int64_t e) {
  constexpr int64_t kAhead = 1024;  // numbers
  PairSums sums[kHeads][kVectors] = {};
  for (int64_t pair = 0; pair < pairs; ++pair)
    for (int i = 0; i < kVectors; ++i) {
      const int16_t* at = a.values + (first + 2 * pair) * a.padded + (e + i * kWide) * 2;
      __builtin_prefetch(at + kAhead);
      const Words values = load_words(at);
      for (int h = 0; h < kHeads; ++h) sums[h][i].add(values, pair_at(w[head + h].n + 2 * pair));
    }
  for (int h = 0; h < kHeads; ++h)
    for (int i = 0; i < kVectors; ++i) {
      float* y = a.sums + (head + h) * a.padded + e + i * kWide;
      store(y, load(y) + floats(sums[h][i]) * w[head + h].unit);
    }
}

template <int kHeads>
static void add_tile(const AttendArgs& a, const TileWeights* w, int64_t head, int64_t first, int64_t pairs) {
  int64_t e = 0;
  for (; e + kAtOnce * kWide <= a.padded; e += kAtOnce * kWide) add_channels<kAtOnce, kHeads>(a, w, head, first, pairs, e);
  for (; e < a.padded; e += kWide) add_channels<1, kHeads>(a, w, head, first, pairs, e);
}

static void keep_position(const AttendArgs& a) {
  const int64_t t = a.position;
  const Grid k(largest_size(a.k, a.size), a.most_key), v(largest_size(a.v, a.size), kMostValue);
  a.key_units[t] = k.unit, a.value_units[t] = v.unit;
  for (int64_t e = 0; e < a.size; ++e) {
    a.keys[((t / kWide * (a.padded / 2) + e / 2) * kWide + t % kWide) * 2 + e % 2] =
        static_cast<int16_t>(whole(a.k[e], k.inverse, a.most_key));
    a.values[t / 2 * 2 * a.padded + e * 2 + t % 2] = static_cast<int16_t>(whole(a.v[e], v.inverse, kMostValue));
  }
}

static void cut_query(const AttendArgs& a, const float* q, WholeQuery& out) {
  const Grid grid(largest_size(q, a.size), a.most_key);
  out.unit = grid.unit;
  for (int64_t e = 0; e < a.padded; ++e)
    out.n[e] = e < a.size ? static_cast<int16_t>(whole(q[e], grid.inverse, a.most_key)) : int16_t{0};
}

// Of [first, first + count) up to a whole vector: softmax left zeros there.
static void cut_weights(const AttendArgs& a, int64_t head, int64_t first, int64_t count, TileWeights& out) {
  using Shorts = int16_t __attribute__((vector_size(32)));
  using LooseShorts = int16_t __attribute__((vector_size(32), aligned(2), may_alias));
  float* p = a.scores + head * a.room + first;
  for (int64_t t = 0; t < count; t += kWide) store(p + t, load(p + t) * load(a.value_units + first + t));
  const Grid grid(largest_size(p, count), kMostValue);
  out.unit = grid.unit;
  for (int64_t t = 0; t < count; t += kWide) {
    Wide n = load(p + t) * grid.inverse;
    n = n < kMostValue ? n : spread(kMostValue);
    const WideInt whole = __builtin_convertvector(n + 0.5F, WideInt);
    *reinterpret_cast<LooseShorts*>(out.n + t) = __builtin_convertvector(whole, Shorts);
  }
}

static void attend(const AttendArgs& a) {
  const int64_t count = a.position + 1, blocks = (count + kWide - 1) / kWide;
  float own[kMostGroup];
  WholeQuery q[kMostGroup];
  TileWeights weights[kMostGroup];
  keep_position(a);
  for (int64_t g = 0; g < a.group; ++g) cut_query(a, a.q + g * a.size, q[g]);
  int64_t g = 0;
  for (; g + 2 <= a.group; g += 2) score_keys<2>(a, q, blocks, g);
  for (; g < a.group; ++g) score_keys<1>(a, q, blocks, g);
  for (g = 0; g < a.group; ++g) {
    softmax(a.scores + g * a.room, count);
    own[g] = a.scores[g * a.room + a.position];
    for (int64_t e = 0; e < a.padded; ++e) a.sums[g * a.padded + e] = 0;
  }
  for (int64_t t = 0; t < count; t += kTilePositions) {
    const int64_t some = count - t < kTilePositions ? count - t : kTilePositions, pairs = (some + 1) / 2;
    for (g = 0; g < a.group; ++g) cut_weights(a, g, t, some, weights[g]);
    for (g = 0; g + 2 <= a.group; g += 2) add_tile<2>(a, weights, g, t, pairs);
    for (; g < a.group; ++g) add_tile<1>(a, weights, g, t, pairs);
  }
  // The token's own value without its rounding: what excludes it from y afterwards (model.xsa) has it so.
  const int16_t* kept = a.values + a.position / 2 * 2 * a.padded + a.position % 2;
  for (int64_t e = 0; e < a.size; ++e) {
    const float rounding = a.v[e] - a.value_units[a.position] * static_cast<float>(kept[e * 2]);
    for (g = 0; g < a.group; ++g) a.y[g * a.size + e] = a.sums[g * a.padded + e] + own[g] * rounding;
  }
}
