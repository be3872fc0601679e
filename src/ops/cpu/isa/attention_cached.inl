// One new token against cached keys and values. Keys come in blocks of kCacheKeys with the positions along the lanes; the query
// heads of a kv head take turns on a stretch of positions, so that only the first reads it from memory.

constexpr int64_t kStretch = 64;  // positions, whole blocks
constexpr int kBlockVecs = kCacheKeys / kLanes;

// Scores of kBlocks blocks of keys for one head.
template <int kBlocks>
FAIRWAY_INLINE void score_blocks(const float* q, const float* keys, int64_t size, float scale, float* scores) {
  vec acc[kBlocks][kBlockVecs] = {};
  for (int64_t e = 0; e < size; ++e) {
    const vec left = splat(q[e]);
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 8
      for (int j = 0; j < kBlockVecs; ++j) acc[b][j] += left * load(keys + (b * size + e) * kCacheKeys + j * kLanes);
    }
  }
#pragma GCC unroll 8
  for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 8
    for (int j = 0; j < kBlockVecs; ++j) store(scores + b * kCacheKeys + j * kLanes, acc[b][j] * scale);
  }
}

// Scores become the softmax's weights in place, those past `count` zero.
void soften_cached(float* scores, int64_t count, int64_t padded) {
  for (int64_t t = count; t < padded; ++t) scores[t] = kMasked;
  vec top = splat(kMasked), total{};
  for (int64_t t = 0; t < padded; t += kLanes) top = vmax(load(scores + t), top);
  float highest = top[0];
  for (int lane = 1; lane < kLanes; ++lane) highest = top[lane] > highest ? top[lane] : highest;
  for (int64_t t = 0; t < padded; t += kLanes) {
    const vec weight = vexp(load(scores + t) - highest);
    store(scores + t, weight);
    total += weight;
  }
  const vec inverse = splat(1.0f / sum_lanes(total));
  for (int64_t t = 0; t < padded; t += kLanes) store(scores + t, load(scores + t) * inverse);
}

// y += Σ weights[t]·values[t] over `count` positions.
void add_values(const float* weights, const float* values, int64_t count, int64_t size, float* y) {
  for_columns(size, [&](int64_t c, auto piece) {
    using T = decltype(piece);
    T sums[4] = {};  // four chains hide the latency of the additions
    int64_t t = 0;
    for (; t + 4 <= count; t += 4) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sums[i] += weights[t + i] * load<T>(values + (t + i) * size + c);
    }
    for (; t < count; ++t) sums[0] += weights[t] * load<T>(values + t * size + c);
    store<T>(y + c, load<T>(y + c) + ((sums[0] + sums[1]) + (sums[2] + sums[3])));
  });
}

void attention_cached(const CachedAttention& a) {
  const int64_t size = a.head_size, padded = (a.count + kCacheKeys - 1) / kCacheKeys * kCacheKeys;
  for (int64_t first = 0; first < padded; first += kStretch) {
    for (int64_t h = 0; h < a.group; ++h) {
      const float *q = a.q + h * size, *keys = a.keys + first * size;
      float* scores = a.scores + h * padded + first;
      if (padded - first >= kStretch) {
        score_blocks<kStretch / kCacheKeys>(q, keys, size, a.scale, scores);
      } else {
        for (int64_t t = 0; t < padded - first; t += kCacheKeys) score_blocks<1>(q, keys + t * size, size, a.scale, scores + t);
      }
    }
  }
  for (int64_t h = 0; h < a.group; ++h) soften_cached(a.scores + h * padded, a.count, padded);
  fill_zero(a.y, a.group * size);
  for (int64_t t = 0; t < a.count; t += kStretch) {
    for (int64_t h = 0; h < a.group; ++h)
      add_values(a.scores + h * padded + t, a.values + t * size, min64(kStretch, a.count - t), size, a.y + h * size);
  }
}
