// Backward attention of one span and kv head. Keys lie along the lanes: for a tile of keys and a block of queries,
// S = Q K^T, P = 2^(S - lse), dP = dY V^T, dS = P (dP - y.dy), then dV^T += dY^T P, dK^T += Q^T dS and dQ += dS K.
// The sums over queries run in one order, so the result does not depend on who else works.

constexpr int kQueryBlock = 48;

struct BackwardState {
  int64_t key = 0, keys = 0;                                                 // the tile: first position and how many
  alignas(64) float keys_t[kMaxE * kQueries], values_t[kMaxE * kQueries];    // K^T, V^T
  alignas(64) float key_rows[kQueries * kMaxE];                              // K times the scale, head size padded to lanes
  alignas(64) float dkeys_t[kMaxE * kQueries], dvalues_t[kMaxE * kQueries];  // dK^T, dV^T
  alignas(64) float weights[kQueryBlock * kQueries], dscores[kQueryBlock * kQueries];  // P, dS
  alignas(64) int32_t position[kQueries];                                              // of each key
};

FAIRWAY_INLINE int64_t padded_size(int64_t head_size) { return (head_size + kLanes - 1) / kLanes * kLanes; }

void begin_keys(const AttentionBackwardSpan& t, BackwardState& s) {
  const int64_t e = t.head_size, padded = padded_size(e);
  if (s.keys < kQueries) {
    fill_zero(s.keys_t, e * kQueries);
    fill_zero(s.values_t, e * kQueries);
  }
  transpose(t.k + s.key * t.ld_kv, t.ld_kv, s.keys, e, s.keys_t, kQueries);
  transpose(t.v + s.key * t.ld_kv, t.ld_kv, s.keys, e, s.values_t, kQueries);
  fill_zero(s.key_rows, kQueries * padded);
  for (int64_t i = 0; i < s.keys; ++i) {
    for (int64_t j = 0; j < e; ++j) s.key_rows[i * padded + j] = t.scale * t.k[(s.key + i) * t.ld_kv + j];
  }
  fill_zero(s.dkeys_t, e * kQueries);
  fill_zero(s.dvalues_t, e * kQueries);
  for (int i = 0; i < kQueries; ++i) s.position[i] = static_cast<int32_t>(s.key + i);
}

// weights: scores in, P out. Lanes beyond the query or before its start become zero.
template <int kVecs>
__attribute__((noinline)) void weigh(const AttentionBackwardSpan& t, BackwardState& s, const float* lse2, int64_t query,
                                     int64_t count, bool masked) {
  const vec factor = splat(t.scale * kLog2e);
  for (int64_t i = 0; i < count; ++i) {
    const vec lse = splat(lse2[query + i]);
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) {
      float* at = s.weights + i * kQueries + j * kLanes;
      store(at, vexp2(load(at) * factor - lse));
    }
  }
  for (int64_t i = 0; masked && i < count; ++i) {
    const int32_t last = static_cast<int32_t>(query + i);
    const int32_t start = t.start ? static_cast<int32_t>(t.start[query + i] - t.origin) : 0;
    for (int j = 0; j < kVecs; ++j) {
      float* at = s.weights + i * kQueries + j * kLanes;
      const ivec key = load_int(s.position + j * kLanes);
      store(at, select((key <= last) & (key >= start), load(at), vec{}));
    }
  }
}

// dscores: dP in, dS out (its factor `scale` is in key_rows and in the writing of dK).
template <int kVecs>
void differentiate(BackwardState& s, const float* dot, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const vec mean = splat(dot[i]);
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) {
      float* at = s.dscores + i * kQueries + j * kLanes;
      store(at, load(s.weights + i * kQueries + j * kLanes) * (load(at) - mean));
    }
  }
}

// Columns [column, column + kVecs * kLanes) of kRows rows of dQ += dS K.
template <int kRows, int kVecs>
FAIRWAY_INLINE void add_query_tile(const BackwardState& s, int64_t e, int64_t column, int64_t keys, const float* dscores,
                                   float* dq) {
  vec acc[kRows][kVecs] = {};
  accumulate<kRows, kVecs, false>(acc, keys, dscores, kQueries, s.key_rows + column, padded_size(e));
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) {
      float* at = dq + r * e + column + j * kLanes;
      if (kVecs > 1) {
        store(at, load(at) + acc[r][j]);
      } else {
        store_first(at, load_first(at, e - column) + acc[r][j], e - column);
      }
    }
  }
}

template <int kRows>
FAIRWAY_INLINE void add_query_rows(const BackwardState& s, int64_t e, int64_t keys, const float* dscores, float* dq) {
  int64_t column = 0;
  for (; column + kGradVecs * kLanes <= e; column += kGradVecs * kLanes) {
    add_query_tile<kRows, kGradVecs>(s, e, column, keys, dscores, dq);
  }
  for (; column < e; column += kLanes) add_query_tile<kRows, 1>(s, e, column, keys, dscores, dq);
}

__attribute__((noinline)) void add_queries(const BackwardState& s, int64_t e, int64_t keys, int64_t count, float* dq) {
  int64_t i = 0;
  for (; i + kGradRows <= count; i += kGradRows) add_query_rows<kGradRows>(s, e, keys, s.dscores + i * kQueries, dq + i * e);
  for (; i < count; ++i) add_query_rows<1>(s, e, keys, s.dscores + i * kQueries, dq + i * e);
}

// Queries [query, query + count) of one head against the first kVecs vectors of the tile's keys.
template <int kVecs>
void backward_block(const AttentionBackwardSpan& t, BackwardState& s, int64_t head, int64_t query, int64_t count) {
  const int64_t e = t.head_size, keys = min64(s.keys, kVecs * kLanes);
  const float* q = t.q + head * t.head_stride + query * e;
  const float* dy = t.dy + head * t.head_stride + query * e;
  const bool masked = query < s.key + keys - 1 || (t.start && t.start[query + count - 1] - t.origin > s.key);
  multiply_tile<kVecs, false, false>(count, e, q, e, s.keys_t, s.weights);
  weigh<kVecs>(t, s, t.lse2 + head * t.row_stride, query, count, masked);
  multiply_tile<kVecs, false, false>(count, e, dy, e, s.values_t, s.dscores);
  differentiate<kVecs>(s, t.dot + head * t.row_stride + query, count);
  multiply_tile<kVecs, true, true>(e, count, dy, e, s.weights, s.dvalues_t);
  multiply_tile<kVecs, true, true>(e, count, q, e, s.dscores, s.dkeys_t);
  if (t.dq) add_queries(s, e, keys, count, t.dq + head * t.head_stride + query * e);
}

// to[key][e] (+)= factor * from[e][key]
void write_keys(const BackwardState& s, int64_t e, const float* from, float factor, float* to, int64_t ld, bool add) {
  alignas(64) float rows[kQueries * kMaxE];
  transpose(from, kQueries, e, s.keys, rows, e);
  for (int64_t i = 0; i < s.keys; ++i) {
    for (int64_t j = 0; j < e; ++j) {
      const float value = factor * rows[i * e + j];
      to[i * ld + j] = add ? to[i * ld + j] + value : value;
    }
  }
}

// The first position from which on no query sees the tile's last key: starts never decrease.
int64_t last_query(const AttentionBackwardSpan& t, int64_t key) {
  if (!t.start) return t.rows;
  int64_t low = key, high = t.rows;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (t.start[middle] - t.origin > key) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

void attention_backward(const AttentionBackwardSpan& t) {
  const int64_t e = t.head_size;
  BackwardState s;
  for (s.key = 0; s.key < t.rows; s.key += kQueries) {
    s.keys = min64(kQueries, t.rows - s.key);
    begin_keys(t, s);
    const int64_t end = last_query(t, s.key + s.keys - 1);
    for (int64_t head = 0; head < t.group; ++head) {
      // On the diagonal a band of queries sees only the vectors of keys up to its own.
      int64_t query = s.key;
      if (query < end) backward_block<1>(t, s, head, query, min64(kLanes, end - query));
      query += kLanes;
      if (query < end) backward_block<2>(t, s, head, query, min64(kLanes, end - query));
      query += kLanes;
      for (; query < end; query += kQueryBlock) backward_block<3>(t, s, head, query, min64(kQueryBlock, end - query));
    }
    if (t.dk) write_keys(s, e, s.dkeys_t, t.scale, t.dk + s.key * t.ld_kv, t.ld_kv, t.add_dk);
    if (t.dv) write_keys(s, e, s.dvalues_t, 1.0f, t.dv + s.key * t.ld_kv, t.ld_kv, t.add_dv);
  }
}
