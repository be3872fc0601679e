// Forward attention of one tile of queries. Queries lie along the lanes: S^T = K Q^T (keys x queries) makes the softmax
// vertical, and P^T is at once the right-hand side of O^T = V^T P^T. Scores are in powers of two (the scale carries log2 e).

constexpr int kQueries = kTileVecs * kLanes;  // queries in a forward tile, keys in a backward tile
constexpr int kMaxE = 128;
constexpr int kKeyBlock = 96;  // keys between two updates of the running maximum
constexpr float kLog2e = 1.44269504f, kLn2 = 0.693147181f;
constexpr float kMasked = -1e30f;

// c[i][lanes] (+)= sum over p < k of A(i, p) b[p][lanes], for `rows` rows of A; c and b have kQueries lanes per row.
template <bool kByColumn, bool kAdd>
FAIRWAY_INLINE void multiply_tile(int64_t rows, int64_t k, const float* a, int64_t stride, const float* b, float* c) {
  int64_t i = 0;
  for (; i + kTileRows <= rows; i += kTileRows) {
    vec acc[kTileRows][kTileVecs];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kTileVecs; ++j) acc[r][j] = kAdd ? load(c + (i + r) * kQueries + j * kLanes) : vec{};
    }
    accumulate<kTileRows, kTileVecs, kByColumn>(acc, k, a + (kByColumn ? i : i * stride), stride, b, kQueries);
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kTileVecs; ++j) store(c + (i + r) * kQueries + j * kLanes, acc[r][j]);
    }
  }
  for (; i < rows; ++i) {
    vec acc[1][kTileVecs];
    for (int j = 0; j < kTileVecs; ++j) acc[0][j] = kAdd ? load(c + i * kQueries + j * kLanes) : vec{};
    accumulate<1, kTileVecs, kByColumn>(acc, k, a + (kByColumn ? i : i * stride), stride, b, kQueries);
    for (int j = 0; j < kTileVecs; ++j) store(c + i * kQueries + j * kLanes, acc[0][j]);
  }
}

FAIRWAY_INLINE ivec load_int(const int32_t* p) { return *reinterpret_cast<const ivec*>(p); }

struct ForwardState {
  alignas(64) float queries[kMaxE * kQueries];  // Q^T times the scale
  alignas(64) float sums[kMaxE * kQueries];     // O^T, not yet divided
  alignas(64) float scores[kKeyBlock * kQueries];
  alignas(64) int32_t position[kQueries], start[kQueries];  // of each query, and of the first key it sees
  vec top[kTileVecs], total[kTileVecs];                     // running maximum and sum of each query
};

// Scores of keys [first, first + count) that a query may not see become kMasked.
void mask_scores(ForwardState& s, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t key = static_cast<int32_t>(first + i);
    for (int j = 0; j < kTileVecs; ++j) {
      float* at = s.scores + i * kQueries + j * kLanes;
      const ivec seen = (load_int(s.position + j * kLanes) >= key) & (load_int(s.start + j * kLanes) <= key);
      store(at, select(seen, load(at), splat(kMasked)));
    }
  }
}

// Turns scores into weights 2^(s - top), after moving the running maximum and what was summed under the old one.
void soften(ForwardState& s, int64_t count, int64_t head_size) {
  vec top[kTileVecs], shrink[kTileVecs], total[kTileVecs];
  bool moved = false;
  for (int j = 0; j < kTileVecs; ++j) top[j] = s.top[j];
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kTileVecs; ++j) top[j] = vmax(load(s.scores + i * kQueries + j * kLanes), top[j]);
  }
  for (int j = 0; j < kTileVecs; ++j) {
    shrink[j] = vexp2(s.top[j] - top[j]);
    total[j] = s.total[j] * shrink[j];
    const ivec grew = top[j] > s.top[j];
    for (int lane = 0; lane < kLanes; ++lane) moved |= grew[lane] != 0;
    s.top[j] = top[j];
  }
  for (int64_t e = 0; moved && e < head_size; ++e) {
    for (int j = 0; j < kTileVecs; ++j) {
      float* at = s.sums + e * kQueries + j * kLanes;
      store(at, load(at) * shrink[j]);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kTileVecs; ++j) {
      float* at = s.scores + i * kQueries + j * kLanes;
      const vec weight = vexp2(load(at) - top[j]);
      total[j] += weight;
      store(at, weight);
    }
  }
  for (int j = 0; j < kTileVecs; ++j) s.total[j] = total[j];
}

void begin_tile(const AttentionForwardTile& t, ForwardState& s) {
  const int64_t e = t.head_size;
  fill_zero(s.sums, e * kQueries);
  if (t.count < kQueries) fill_zero(s.queries, e * kQueries);
  transpose(t.q, t.ld_q, t.count, e, s.queries, kQueries);
  const vec factor = splat(t.scale * kLog2e);
  for (int64_t i = 0; i < e * kQueries; i += kLanes) store(s.queries + i, load(s.queries + i) * factor);
  for (int i = 0; i < kQueries; ++i) {
    const int64_t lane = min64(i, t.count - 1);
    s.position[i] = static_cast<int32_t>(t.first + lane);
    s.start[i] = t.start ? static_cast<int32_t>(t.start[lane] - t.origin) : 0;
  }
  for (int j = 0; j < kTileVecs; ++j) s.top[j] = splat(kMasked), s.total[j] = vec{};
}

void attention_forward(const AttentionForwardTile& t) {
  const int64_t e = t.head_size, end = t.first + t.count;
  ForwardState s;
  begin_tile(t, s);
  for (int64_t key = s.start[0]; key < end; key += kKeyBlock) {
    const int64_t count = min64(kKeyBlock, end - key);
    multiply_tile<false, false>(count, e, t.k + key * e, e, s.queries, s.scores);
    if (key + count > t.first + 1 || key < s.start[kQueries - 1]) mask_scores(s, key, count);
    soften(s, count, e);
    multiply_tile<true, true>(e, count, t.v + key * e, e, s.scores, s.sums);
  }
  for (int64_t i = 0; i < e; ++i) {
    for (int j = 0; j < kTileVecs; ++j) {
      float* at = s.sums + i * kQueries + j * kLanes;
      store(at, load(at) / s.total[j]);
    }
  }
  transpose(s.sums, kQueries, e, t.count, t.y, t.ld_y);
  for (int64_t i = 0; i < t.count; ++i) {
    t.lse[i * t.ld_lse] = kLn2 * s.top[i / kLanes][i % kLanes] + __builtin_logf(s.total[i / kLanes][i % kLanes]);
  }
}
