// Forward attention of one tile of queries. Queries lie along the lanes: S^T = K Q^T (keys x queries) makes the softmax
// vertical, and P^T is at once the right-hand side of O^T = V^T P^T. Scores are in powers of two (the scale carries log2 e).
// Past the diagonal the first vectors of queries see nothing, so keys there are worked on in bands with fewer vectors.

static_assert(kTileVecs == 3, "bands are spelled out for three vectors");
constexpr int kQueries = kTileVecs * kLanes;  // queries in a forward tile, keys in a backward tile
constexpr int kMaxE = 128;
constexpr int kKeyBlock = 96;  // keys between two updates of the running maximum
constexpr float kLog2e = 1.44269504f, kLn2 = 0.693147181f;
constexpr float kMasked = -1e30f;

template <int kRows, int kVecs, bool kByColumn, bool kAdd>
FAIRWAY_INLINE void multiply_rows(int64_t k, const float* a, int64_t stride, const float* b, float* c) {
  vec acc[kRows][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) acc[r][j] = kAdd ? load(c + r * kQueries + j * kLanes) : vec{};
  }
  accumulate<kRows, kVecs, kByColumn>(acc, k, a, stride, b, kQueries);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) store(c + r * kQueries + j * kLanes, acc[r][j]);
  }
}

// c[i][lanes] (+)= sum over p < k of A(i, p) b[p][lanes] for `rows` rows of A and kVecs vectors; rows of b and c are kQueries
// long.
template <int kVecs, bool kByColumn, bool kAdd>
__attribute__((noinline)) void multiply_tile(int64_t rows, int64_t k, const float* a, int64_t stride, const float* b,
                                             float* c) {
  int64_t i = 0;
  for (; i + kTileRows <= rows; i += kTileRows) {
    multiply_rows<kTileRows, kVecs, kByColumn, kAdd>(k, a + (kByColumn ? i : i * stride), stride, b, c + i * kQueries);
  }
  for (; i < rows; ++i) {
    multiply_rows<1, kVecs, kByColumn, kAdd>(k, a + (kByColumn ? i : i * stride), stride, b, c + i * kQueries);
  }
}

FAIRWAY_INLINE ivec load_int(const int32_t* p) { return *reinterpret_cast<const ivec*>(p); }

struct ForwardState {
  int64_t head_size, first;                     // E, and the position of the first query
  alignas(64) float queries[kMaxE * kQueries];  // Q^T times the scale
  alignas(64) float sums[kMaxE * kQueries];     // O^T, not yet divided
  alignas(64) float scores[kKeyBlock * kQueries];
  alignas(64) int32_t position[kQueries], start[kQueries];  // of each query, and of the first key it sees
  vec top[kTileVecs], total[kTileVecs];                     // running maximum and sum of each query
};

// The keys of a block that only vectors kFirst and up see: rows [begin, begin + count) of its scores.
struct Band {
  int64_t begin, count;
};
template <int kFirst>
FAIRWAY_INLINE Band band_of(const ForwardState& s, int64_t key, int64_t count) {
  int64_t begin = kFirst == 0 ? 0 : s.first + kFirst * kLanes - key;
  int64_t end = kFirst + 1 == kTileVecs ? count : min64(count, s.first + (kFirst + 1) * kLanes - key);
  begin = begin < 0 ? 0 : begin;
  return {begin, end < begin ? 0 : end - begin};
}

template <int kFirst>
void score_band(const AttentionForwardTile& t, ForwardState& s, int64_t key, int64_t count) {
  const Band band = band_of<kFirst>(s, key, count);
  const int64_t e = s.head_size, at = band.begin * kQueries + kFirst * kLanes;
  multiply_tile<kTileVecs - kFirst, false, false>(band.count, e, t.k + (key + band.begin) * e, e, s.queries + kFirst * kLanes,
                                                  s.scores + at);
}

template <int kFirst>
void sum_band(const AttentionForwardTile& t, ForwardState& s, int64_t key, int64_t count) {
  const Band band = band_of<kFirst>(s, key, count);
  const int64_t e = s.head_size, at = band.begin * kQueries + kFirst * kLanes;
  if (band.count == 0) return;
  multiply_tile<kTileVecs - kFirst, true, true>(e, band.count, t.v + (key + band.begin) * e, e, s.scores + at,
                                                s.sums + kFirst * kLanes);
}

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

template <int kFirst>
FAIRWAY_INLINE void raise_top(const ForwardState& s, int64_t key, int64_t count, vec (&top)[kTileVecs]) {
  const Band band = band_of<kFirst>(s, key, count);
  const float* scores = s.scores + band.begin * kQueries;
  for (int64_t i = 0; i < band.count; ++i) {
#pragma GCC unroll 4
    for (int j = kFirst; j < kTileVecs; ++j) top[j] = vmax(load(scores + i * kQueries + j * kLanes), top[j]);
  }
}

template <int kFirst>
FAIRWAY_INLINE void weigh_band(ForwardState& s, int64_t key, int64_t count) {
  const Band band = band_of<kFirst>(s, key, count);
  float* scores = s.scores + band.begin * kQueries;
  vec top[kTileVecs], total[kTileVecs];
#pragma GCC unroll 4
  for (int j = kFirst; j < kTileVecs; ++j) top[j] = s.top[j], total[j] = s.total[j];
  for (int64_t i = 0; i < band.count; ++i) {
#pragma GCC unroll 4
    for (int j = kFirst; j < kTileVecs; ++j) {
      float* at = scores + i * kQueries + j * kLanes;
      const vec weight = vexp2(load(at) - top[j]);
      total[j] += weight;
      store(at, weight);
    }
  }
#pragma GCC unroll 4
  for (int j = kFirst; j < kTileVecs; ++j) s.total[j] = total[j];
}

// Turns scores into weights 2^(s - top), after moving the running maximum and what was summed under the old one.
__attribute__((noinline)) void soften(ForwardState& s, int64_t key, int64_t count) {
  vec top[kTileVecs], shrink[kTileVecs];
#pragma GCC unroll 4
  for (int j = 0; j < kTileVecs; ++j) top[j] = s.top[j];
  raise_top<0>(s, key, count, top);
  raise_top<1>(s, key, count, top);
  raise_top<2>(s, key, count, top);
#pragma GCC unroll 4
  for (int j = 0; j < kTileVecs; ++j) {
    shrink[j] = vexp2(s.top[j] - top[j]);
    s.total[j] *= shrink[j];
    s.top[j] = top[j];
  }
  for (int64_t e = 0; e < s.head_size; ++e) {
#pragma GCC unroll 4
    for (int j = 0; j < kTileVecs; ++j) {
      float* at = s.sums + e * kQueries + j * kLanes;
      store(at, load(at) * shrink[j]);
    }
  }
  weigh_band<0>(s, key, count);
  weigh_band<1>(s, key, count);
  weigh_band<2>(s, key, count);
}

void begin_tile(const AttentionForwardTile& t, ForwardState& s) {
  const int64_t e = t.head_size;
  s.head_size = e, s.first = t.first;
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

void end_tile(const AttentionForwardTile& t, ForwardState& s) {
  vec inverse[kTileVecs];
  for (int j = 0; j < kTileVecs; ++j) inverse[j] = 1.0f / s.total[j];
  for (int64_t i = 0; i < t.head_size; ++i) {
    for (int j = 0; j < kTileVecs; ++j) {
      float* at = s.sums + i * kQueries + j * kLanes;
      store(at, load(at) * inverse[j]);
    }
  }
  transpose(s.sums, kQueries, t.head_size, t.count, t.y, t.ld_y);
  for (int64_t i = 0; i < t.count; ++i) {
    t.lse[i * t.ld_lse] = kLn2 * s.top[i / kLanes][i % kLanes] + __builtin_logf(s.total[i / kLanes][i % kLanes]);
  }
}

void attention_forward(const AttentionForwardTile& t) {
  const int64_t end = t.first + t.count;
  ForwardState s;
  begin_tile(t, s);
  for (int64_t key = s.start[0]; key < end; key += kKeyBlock) {
    const int64_t count = min64(kKeyBlock, end - key);
    score_band<0>(t, s, key, count);
    score_band<1>(t, s, key, count);
    score_band<2>(t, s, key, count);
    if (key + count > t.first + 1 || key < s.start[kQueries - 1]) mask_scores(s, key, count);
    soften(s, key, count);
    sum_band<0>(t, s, key, count);
    sum_band<1>(t, s, key, count);
    sum_band<2>(t, s, key, count);
  }
  end_tile(t, s);
}
