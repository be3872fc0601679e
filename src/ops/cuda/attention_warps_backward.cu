// With P = exp(scale·qkᵀ − lse) and along = Σ_e dy·y of each query: dV = Pᵀ·dY, dS = P ⊙ (dY·Vᵀ − along), dQ = scale·dS·K,
// dK = scale·dSᵀ·Q. One kernel goes from keys to queries (dk, dv), another makes the scores again for dq: two products more
// than needed, but no sum over blocks and so one order of summation.
#include "ops/cuda/attention_warps.cuh"

namespace fairway::cuda {
namespace {

using namespace warp;

// Of a query and head.
struct alignas(8) QueryStatistic {
  float lse, along;  // lse in powers of two
};

struct HeadGradient {
  const bf16* dy;               // (M, H·64)
  const QueryStatistic* query;  // (H, M)
};

// along = Σ z·dz of each query and head, eight lanes each.
__global__ void query_statistics(WarpHeads a, const bf16* z, const bf16* dz, const float* lse, QueryStatistic* to) {
  constexpr int kLanes = 8;
  const int64_t items = int64_t{a.rows} * a.heads;
  for (int64_t item = first_group<kLanes>(); item < items; item += group_stride<kLanes>()) {
    const int64_t at = item * kHead + threadIdx.x % kLanes * 8;
    float x[8], y[8], total = 0;
    Source<bf16>{z}.load(at, x);
    Source<bf16>{dz}.load(at, y);
#pragma unroll
    for (int i = 0; i < 8; ++i) total += x[i] * y[i];
    total = group_sum<kLanes>(total);
    const int row = static_cast<int>(item / a.heads), head = static_cast<int>(item - int64_t{row} * a.heads);
    if (threadIdx.x % kLanes == 0) to[int64_t{head} * a.rows + row] = {lse[a.statistic(row, head)] * kLog2E, total};
  }
}

// dq: 32 keys at a time, since two sums of scores are alive.
__global__ void __launch_bounds__(kQueryThreads, 2) warp_queries_backward(WarpHeads a, HeadGradient g, HeadSink dq) {
  constexpr int kKeys = 32;
  __shared__ union {
    Tile<kOwned> owned[2];  // q and dy, at first
    KeyTiles keys;
  } shared;
  const QueryBlock block(a);
  const int own_row = warp_id() * 16 * kQueryTiles;
  const Queries<kQueryTiles> own(a, block.row + own_row);
  const int64_t width = int64_t{a.heads} * kHead;
  copy_rows<kOwned, kQueryThreads>(shared.owned[0], a.q + block.head * kHead, a.q_pitch, block.row, a.rows);
  copy_rows<kOwned, kQueryThreads>(shared.owned[1], g.dy + block.head * kHead, width, block.row, a.rows);
  commit_copies();
  QueryStatistic of[kQueryTiles][2];
#pragma unroll
  for (int m = 0; m < kQueryTiles; ++m)
#pragma unroll
    for (int b = 0; b < 2; ++b)
      of[m][b] = g.query[int64_t{block.head} * a.rows + min(own.row + 16 * m + lane_row() + 8 * b, a.rows - 1)];
  wait_copies<0>();
  __syncthreads();
  Fragment q[kQueryTiles][kSteps], dy[kQueryTiles][kSteps];
  load_owned(q, shared.owned[0], own_row);
  load_owned(dy, shared.owned[1], own_row);
  __syncthreads();
  copy_keys(shared.keys, 0, a, block.kv_head, block.first_key);
  Sum sums[kQueryTiles][kHead / 8] = {};
  for (int turn = 0; turn < block.turns; ++turn) {
    wait_copies<0>();
    __syncthreads();
    const int first = block.first_key + turn * kTurn;
    if (turn + 1 < block.turns) copy_keys(shared.keys, turn + 1, a, block.kv_head, first + kTurn);
    const Tile<kTurn>&k = shared.keys.k[turn % 2], &v = shared.keys.v[turn % 2];
#pragma unroll 1
    for (int part = 0; part < kTurn; part += kKeys) {
      const int key = first + part;
      if (!own.some(key, kKeys)) continue;
      const bool cut = own.cut(key, kKeys);
      Sum scores[kQueryTiles][kKeys / 8], slopes[kQueryTiles][kKeys / 8];
      multiply_columns(scores, q, k, part);
      multiply_columns(slopes, dy, v, part);
      Fragment rounded[kQueryTiles][kKeys / 16];
#pragma unroll
      for (int m = 0; m < kQueryTiles; ++m) {
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float p = exp2_fast(fmaf(scores[m][n][i], a.scale * kLog2E, -of[m][i / 2].lse));
            if (cut && !own.sees(m, i / 2, key + 8 * n + lane_column() + i % 2)) p = 0;
            slopes[m][n][i] = p * (slopes[m][n][i] - of[m][i / 2].along);
          }
#pragma unroll
        for (int n = 0; n < kKeys / 16; ++n) round_sums(rounded[m][n], slopes[m][2 * n], slopes[m][2 * n + 1]);
      }
      add_terms(sums, rounded, k, part);
    }
  }
#pragma unroll
  for (int m = 0; m < kQueryTiles; ++m) dq.store(own.row + 16 * m + lane_row(), a.rows, block.head * kHead, sums[m], a.scale);
}

constexpr int kKeyWarps = 8, kKeyThreads = 32 * kKeyWarps;

// What a block of keys meets in a turn: queries query … query+63 of a head, in one of two places.
struct QueryTurn {
  int place, head, query;
};
struct QueryTiles {
  Tile<kTurn> q[2], dy[2];

  // Behind the last query everything is zero, and so is what it adds to dk and dv.
  __device__ void copy(QueryStatistic (&of)[2][kTurn], const QueryTurn& turn, const WarpHeads& a, const HeadGradient& g) {
    copy_rows<kTurn, kKeyThreads>(q[turn.place], a.q + turn.head * kHead, a.q_pitch, turn.query, a.rows);
    copy_rows<kTurn, kKeyThreads>(dy[turn.place], g.dy + turn.head * kHead, int64_t{a.heads} * kHead, turn.query, a.rows);
    const int row = turn.query + static_cast<int>(threadIdx.x);
    if (threadIdx.x < kTurn)
      copy_eight(&of[turn.place][threadIdx.x], g.query + int64_t{turn.head} * a.rows + min(row, a.rows - 1), row < a.rows);
    commit_copies();
  }
};

// A warp's 16 keys, and the queries that see them.
struct Keys {
  int row;               // the warp's first
  int own[2], end[2];    // the lane's, and one behind the last query of each
  int earliest, latest;  // ends of all of the warp's keys
  __device__ Keys(const WarpHeads& a, int first_row) : row(first_row) {
    const int last = a.rows - 1;
#pragma unroll
    for (int b = 0; b < 2; ++b) own[b] = row + lane_row() + 8 * b, end[b] = a.end(min(own[b], last));
    earliest = a.end(min(row, last));
    latest = a.end(min(row + 15, last));
  }
  // Of queries query … query+63: whether one sees a key, and whether one does not see all of them.
  __device__ bool some(int query) const { return query + kTurn > row && query < latest; }
  __device__ bool cut(int query) const { return query < row + 15 || query + kTurn > earliest; }

  // Scores (keys × queries) become weights, and V·dYᵀ becomes dS without its scale.
  __device__ void weigh(Sum (&scores)[1][kTurn / 8], Sum (&slopes)[1][kTurn / 8], const QueryStatistic* of, int query,
                        float c) const {
    const bool is_cut = cut(query);
#pragma unroll
    for (int n = 0; n < kTurn / 8; ++n) {
      const float4 pair = *reinterpret_cast<const float4*>(of + 8 * n + lane_column());
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int of_query = query + 8 * n + lane_column() + i % 2;
        float p = exp2_fast(fmaf(scores[0][n][i], c, -(i % 2 == 0 ? pair.x : pair.z)));
        if (is_cut && (of_query < own[i / 2] || of_query >= end[i / 2])) p = 0;
        scores[0][n][i] = p;
        slopes[0][n][i] = p * (slopes[0][n][i] - (i % 2 == 0 ? pair.y : pair.w));
      }
    }
  }
};

// dk and dv: a warp has 16 keys, for all heads of the group one after the other.
__global__ void __launch_bounds__(kKeyThreads, 1) warp_keys_backward(WarpHeads a, HeadGradient g, HeadSink dk, HeadSink dv) {
  __shared__ union {
    Tile<kOwned> owned[2];  // k and v, at first
    QueryTiles queries;
  } shared;
  __shared__ alignas(16) QueryStatistic of[2][kTurn];
  const int kv_head = static_cast<int>(blockIdx.y), group = a.heads / a.kv_heads;
  const int first_key = static_cast<int>(blockIdx.x) * kOwned;
  copy_rows<kOwned, kKeyThreads>(shared.owned[0], a.k + kv_head * kHead, a.k_pitch, first_key, a.rows);
  copy_rows<kOwned, kKeyThreads>(shared.owned[1], a.v + kv_head * kHead, a.v_pitch, first_key, a.rows);
  commit_copies();
  const Keys keys(a, first_key + warp_id() * 16);
  const int tiles = (a.end(min(first_key + kOwned, a.rows) - 1) - first_key + kTurn - 1) / kTurn, turns = tiles * group;
  wait_copies<0>();
  __syncthreads();
  Fragment k[1][kSteps], v[1][kSteps];
  load_owned(k, shared.owned[0], warp_id() * 16);
  load_owned(v, shared.owned[1], warp_id() * 16);
  __syncthreads();
  const auto turn_of = [&](int number) {
    return QueryTurn{number % 2, kv_head * group + number / tiles, first_key + number % tiles * kTurn};
  };
  shared.queries.copy(of, turn_of(0), a, g);
  Sum dk_sums[1][kHead / 8] = {}, dv_sums[1][kHead / 8] = {};
  for (int number = 0; number < turns; ++number) {
    const QueryTurn turn = turn_of(number);
    wait_copies<0>();
    __syncthreads();
    if (number + 1 < turns) shared.queries.copy(of, turn_of(number + 1), a, g);
    if (!keys.some(turn.query)) continue;
    const Tile<kTurn>&q = shared.queries.q[turn.place], &dy = shared.queries.dy[turn.place];
    Sum scores[1][kTurn / 8], slopes[1][kTurn / 8];
    multiply_columns(scores, k, q, 0);
    multiply_columns(slopes, v, dy, 0);
    keys.weigh(scores, slopes, of[turn.place], turn.query, a.scale * kLog2E);
    Fragment weights[1][kTurn / 16], rounded[1][kTurn / 16];
#pragma unroll
    for (int n = 0; n < kTurn / 16; ++n) {
      round_sums(weights[0][n], scores[0][2 * n], scores[0][2 * n + 1]);
      round_sums(rounded[0][n], slopes[0][2 * n], slopes[0][2 * n + 1]);
    }
    add_terms(dv_sums, weights, dy, 0);
    add_terms(dk_sums, rounded, q, 0);
  }
  dk.store(keys.own[0], a.rows, kv_head * kHead, dk_sums[0], a.scale);
  dv.store(keys.own[0], a.rows, kv_head * kHead, dv_sums[0], 1);
}

}  // namespace

void attention_warps_backward(Scratch& scratch, const Attention& op, const Backward<Attention>& b, const HeadResult& result) {
  const WarpHeads a = warp_heads(op, b.in);
  const int64_t items = int64_t{a.rows} * a.heads;
  auto* of_queries = scratch.take<QueryStatistic>(items);
  query_statistics<<<blocks_for(scratch.context(), items, kThreads / 8), kThreads, 0, scratch.stream()>>>(
      a, pointer<bf16>(result.z), pointer<bf16>(result.dz), pointer<float>(b.saved.lse), of_queries);
  const HeadGradient g{pointer<bf16>(b.dout.z), of_queries};
  if (b.din.q)
    warp_queries_backward<<<owner_blocks(a.rows, a.heads), kQueryThreads, 0, scratch.stream()>>>(a, g, head_sink(b.din.q));
  if (b.din.k || b.din.v)
    warp_keys_backward<<<owner_blocks(a.rows, a.kv_heads), kKeyThreads, 0, scratch.stream()>>>(a, g, head_sink(b.din.k),
                                                                                               head_sink(b.din.v));
  check_launch("attention' of 64-wide heads");
}

}  // namespace fairway::cuda
