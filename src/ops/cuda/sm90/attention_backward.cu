// Gradients of causal attention over heads of 64 in bf16, on Hopper's tensor cores, without atomics: one kernel owns keys and
// sums over queries (dk, dv), one owns queries and sums over keys (dq). Both rebuild P = exp(scale·qkᵀ − lse); that costs two
// products of seven twice, and buys a fixed order of summation and no traffic for partial dq.
//
// dV = Pᵀ·dY, dS = P ⊙ (dY·Vᵀ − along), dQ = scale·dS·K, dK = scale·dSᵀ·Q, along = Σ_e dY·Y of each query.
// A warpgroup owns 64 rows; tiles of the other side stream through shared memory. In a turn of two tiles the products
// of one run while the other's weights are computed.
#include "ops/cuda/elements.cuh"
#include "ops/cuda/sm90/attention.h"
#include "ops/cuda/sm90/attention_shape.cuh"

namespace fairway::cuda {
namespace {

using namespace sm90;

constexpr float kLog2E = 1.4426950408889634f;

// Of two neighbouring queries: log2-sum-exp2 of their scores, and along.
struct alignas(16) PairStats {
  float lse[2], along[2];
};

__global__ void gather_stats(HeadShape s, int64_t items, const bf16* y, const bf16* dy, const float* lse, float* stats) {
  constexpr int kLanes = 8, kEach = 8;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  for (int64_t item = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes; item < items;
       item += int64_t{gridDim.x} * blockDim.x / kLanes) {
    float a[kEach], b[kEach], along = 0;
    Source<bf16>{y}.load(item * kTile + lane * kEach, a);
    Source<bf16>{dy}.load(item * kTile + lane * kEach, b);
#pragma unroll
    for (int k = 0; k < kEach; ++k) along += a[k] * b[k];
    along = group_sum<kLanes>(along);
    const int row = static_cast<int>(item / s.heads), head = static_cast<int>(item % s.heads);
    const int64_t at = s.statistic(row, head);
    if (lane < 2) stats[at / 2 * 4 + lane * 2 + at % 2] = lane == 0 ? lse[at] * kLog2E : along;
  }
}

struct Places {
  Sink<bf16> sink;
  int64_t pitch;
  // Rows row … row+63 of the head at `column`, this warpgroup's accumulator times factor.
  __device__ void store(int64_t row, int column, const Accumulator& d, float factor) const {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4, lane = lane_id();
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int64_t at = (row + 16 * warp + lane / 4 + 8 * b) * pitch + column + 2 * (lane % 4);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float pair[2] = {d[4 * j + 2 * b] * factor, d[4 * j + 2 * b + 1] * factor};
        sink.store(at + 8 * j, pair);
      }
    }
  }
};

struct KeysShared {
  Tile k[2], v[2], q[kStages][2], dy[kStages][2];
  PairStats stats[kStages][kTile];
  Pipe pipe;
};

struct KeysMaps {
  CUtensorMap q, k, v, dy;
};

// Queries from here on do not see the keys before `key`.
template <bool Segmented>
__device__ int end_of_queries(const HeadShape& s, int key) {
  if (!Segmented) return s.length;
  int low = key - 1, high = s.length;
  while (low < high) {
    const int middle = (low + high) / 2;
    s.start[middle] >= key ? high = middle : low = middle + 1;
  }
  return low;
}

// exp2(score·c − lse) of keys (rows) × queries (columns), 0 where a query does not see a key. The accumulators of scores are
// read only: a product that replaces them may be enqueued at once.
template <bool Segmented>
__device__ void key_weights(Fragment& to, const float* scores, const HeadShape& s, const PairStats* stats, int key, int query) {
  const int lane = lane_id(), row = key + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
  const float c = s.scale * kLog2E;
  const bool cut = key >= query || (Segmented && s.start[query + kTile - 1] > key);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int column = 8 * j + 2 * (lane % 4);
    const float2 lse = *reinterpret_cast<const float2*>(stats[column / 2].lse);
    float p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) p[i] = exp2_fast(fmaf(scores[4 * j + i], c, -(i % 2 == 0 ? lse.x : lse.y)));
    if (cut) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int of_key = row + 8 * (i / 2), of_query = query + column + i % 2;
        if (of_key > of_query || (Segmented && s.start[of_query] > of_key)) p[i] = 0;
      }
    }
    round_four(to, j, p);
  }
}

// p ⊙ (dp − along).
__device__ inline void key_slopes(Fragment& to, const float* dp, const Fragment& p, const PairStats* stats) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 along = *reinterpret_cast<const float2*>(stats[4 * j + lane_id() % 4].along);
    float slope[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) slope[i] = rounded(p, 4 * j + i) * (dp[4 * j + i] - (i % 2 == 0 ? along.x : along.y));
    round_four(to, j, slope);
  }
}

template <bool Segmented>
__global__ void __launch_bounds__(kBlockThreads, 1)
    keys_kernel(const __grid_constant__ KeysMaps maps, const HeadShape s, const PairStats* stats, Places dk, Places dv) {
  extern __shared__ std::byte memory[];
  auto& shared = *reinterpret_cast<KeysShared*>((reinterpret_cast<uintptr_t>(memory) + 1023) / 1024 * 1024);
  Pipe& pipe = shared.pipe;
  pipe.init();
  const int sequence = static_cast<int>(blockIdx.x) / s.kv_heads, kv_head = static_cast<int>(blockIdx.x) % s.kv_heads;
  const int first_key = static_cast<int>(blockIdx.y) * kPair, base = sequence * s.length, group = s.heads / s.kv_heads;
  const int pairs = (end_of_queries<Segmented>(s, first_key + kPair) - first_key + kPair - 1) / kPair, total = group * pairs;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    give_registers<24>();
    if (threadIdx.x != 0) return;
    pipe.fixed.expect(4 * kTileBytes);
    load_pair(shared.k, maps.k, kv_head * kTile, base + first_key, pipe.fixed);
    load_pair(shared.v, maps.v, kv_head * kTile, base + first_key, pipe.fixed);
    for (int turn = 0; turn < total; ++turn) {
      const int stage = pipe.to_fill(turn, 4 * kTileBytes + sizeof(shared.stats[0]));
      const int head = kv_head * group + turn / pairs, query = base + first_key + turn % pairs * kPair;
      load_pair(shared.q[stage], maps.q, head * kTile, query, pipe.full[stage]);
      load_pair(shared.dy[stage], maps.dy, head * kTile, query, pipe.full[stage]);
      load_bytes(shared.stats[stage], stats + s.statistic(query, head) / 2, sizeof(shared.stats[0]), pipe.full[stage]);
    }
    return;
  }
  take_registers<240>();
  const int key = first_key + (warpgroup - 1) * kTile;  // of the sequence
  const Tile &k = shared.k[warpgroup - 1], &v = shared.v[warpgroup - 1];
  Accumulator dk_sum = {}, dv_sum = {};
  pipe.fixed.wait(0);
  for (int turn = 0; turn < total; ++turn) {
    const int stage = pipe.filled(turn), query = first_key + turn % pairs * kPair;
    const PairStats* of_stage = shared.stats[stage];
    WideAccumulator scores, dp;
    Fragment weights[2], slopes[2];
    multiply_rows(scores, k, shared.q[stage]);
    multiply_rows(dp, v, shared.dy[stage]);
    wgmma_wait<1>();
    pin(scores);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      key_weights<Segmented>(weights[half], scores + 32 * half, s, of_stage + 32 * half, key, query + kTile * half);
      add_product(dv_sum, weights[half], shared.dy[stage][half]);
    }
    wgmma_wait<2>();
    pin(dp);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      key_slopes(slopes[half], dp + 32 * half, weights[half], of_stage + 32 * half);
      add_product(dk_sum, slopes[half], shared.q[stage][half]);
    }
    wgmma_wait<0>();
    pin(dk_sum);
    pin(dv_sum);
    pipe.release(stage);
  }
  dk.store(base + key, kv_head * kTile, dk_sum, s.scale);
  dv.store(base + key, kv_head * kTile, dv_sum, 1);
}

struct QueriesShared {
  Tile q[2], dy[2], k[kStages][2], v[kStages][2];
  Pipe pipe;
};

// The same of queries (rows) × keys (columns).
template <bool Segmented>
__device__ void query_weights(Fragment& to, const float* scores, const HeadShape& s, const float (&lse)[2], int query,
                              int key) {
  const int lane = lane_id(), row = query + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
  const float c = s.scale * kLog2E;
  const bool cut = key >= query || (Segmented && s.start[query + kTile - 1] > key);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) p[i] = exp2_fast(fmaf(scores[4 * j + i], c, -lse[i / 2]));
    if (cut) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int of_query = row + 8 * (i / 2), of_key = key + 8 * j + 2 * (lane % 4) + i % 2;
        if (of_key > of_query || (Segmented && s.start[of_query] > of_key)) p[i] = 0;
      }
    }
    round_four(to, j, p);
  }
}

__device__ inline void query_slopes(Fragment& to, const float* dp, const Fragment& p, const float (&along)[2]) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float slope[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) slope[i] = rounded(p, 4 * j + i) * (dp[4 * j + i] - along[i / 2]);
    round_four(to, j, slope);
  }
}

template <bool Segmented>
__global__ void __launch_bounds__(kBlockThreads, 1)
    queries_kernel(const __grid_constant__ KeysMaps maps, const HeadShape s, const PairStats* stats, Places dq) {
  extern __shared__ std::byte memory[];
  auto& shared = *reinterpret_cast<QueriesShared*>((reinterpret_cast<uintptr_t>(memory) + 1023) / 1024 * 1024);
  Pipe& pipe = shared.pipe;
  pipe.init();
  const int sequence = static_cast<int>(blockIdx.x) / s.heads, head = static_cast<int>(blockIdx.x) % s.heads;
  const int kv_head = head / (s.heads / s.kv_heads), base = sequence * s.length;
  const int first_query = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kPair;  // the longest first
  const int first_key = Segmented ? s.start[first_query] / kPair * kPair : 0, pairs = (first_query - first_key) / kPair + 1;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    give_registers<24>();
    if (threadIdx.x != 0) return;
    pipe.fixed.expect(4 * kTileBytes);
    load_pair(shared.q, maps.q, head * kTile, base + first_query, pipe.fixed);
    load_pair(shared.dy, maps.dy, head * kTile, base + first_query, pipe.fixed);
    for (int turn = 0; turn < pairs; ++turn) {
      const int stage = pipe.to_fill(turn, 4 * kTileBytes), key = base + first_key + turn * kPair;
      load_pair(shared.k[stage], maps.k, kv_head * kTile, key, pipe.full[stage]);
      load_pair(shared.v[stage], maps.v, kv_head * kTile, key, pipe.full[stage]);
    }
    return;
  }
  take_registers<240>();
  const int query = first_query + (warpgroup - 1) * kTile;
  const Tile &q = shared.q[warpgroup - 1], &dy = shared.dy[warpgroup - 1];
  Accumulator dq_sum = {};
  float lse[2], along[2];
#pragma unroll
  for (int b = 0; b < 2; ++b) {
    const int row = base + query + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane_id() / 4 + 8 * b;
    const int64_t at = s.statistic(row, head);
    lse[b] = stats[at / 2].lse[at % 2];
    along[b] = stats[at / 2].along[at % 2];
  }
  pipe.fixed.wait(0);
  for (int turn = 0; turn < pairs; ++turn) {
    const int stage = pipe.filled(turn), key = first_key + turn * kPair;
    WideAccumulator scores, dp;
    Fragment weights[2], slopes[2];
    multiply_rows(scores, q, shared.k[stage]);
    multiply_rows(dp, dy, shared.v[stage]);
    wgmma_wait<1>();
    pin(scores);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      query_weights<Segmented>(weights[half], scores + 32 * half, s, lse, query, key + kTile * half);
    wgmma_wait<0>();
    pin(dp);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      query_slopes(slopes[half], dp + 32 * half, weights[half], along);
      add_product(dq_sum, slopes[half], shared.k[stage][half]);
    }
    wgmma_wait<0>();
    pin(dq_sum);
    pipe.release(stage);
  }
  dq.store(base + query, head * kTile, dq_sum, s.scale);
}

Places places(const Tensor& gradient) { return {sink<bf16>(gradient), gradient ? pitch_of(gradient) : 0}; }

template <bool Segmented>
void run(Scratch& scratch, const Backward<Attention>& b, const HeadShape& s, const PairStats* stats) {
  const KeysMaps maps{tile_map(b.in.q), tile_map(b.in.k), tile_map(b.in.v), tile_map(b.dout.y)};
  const auto sequences = static_cast<unsigned>(b.in.q.rows() / s.length);
  const auto blocks = static_cast<unsigned>(s.length / kPair);
  if (b.din.k || b.din.v)
    launch_tiles<KeysShared>(scratch, keys_kernel<Segmented>, dim3(sequences * static_cast<unsigned>(s.kv_heads), blocks), maps,
                             s, stats, places(b.din.k), places(b.din.v));
  if (b.din.q)
    launch_tiles<QueriesShared>(scratch, queries_kernel<Segmented>, dim3(sequences * static_cast<unsigned>(s.heads), blocks),
                                maps, s, stats, places(b.din.q));
}

}  // namespace

bool sm90_attention_backward(Scratch& scratch, const Attention& op, const Backward<Attention>& b) {
  if (!suits_sm90(op, b.in)) return false;
  const HeadShape s = head_shape(op, b.in);
  const int64_t items = b.in.q.rows() * s.heads;
  auto* stats = scratch.take<float>(2 * items);
  gather_stats<<<blocks_for(scratch.context(), items, kThreads / 8), kThreads, 0, scratch.stream()>>>(
      s, items, pointer<bf16>(b.out.y), pointer<bf16>(b.dout.y), pointer<float>(b.saved.lse), stats);
  const auto* pairs = reinterpret_cast<const PairStats*>(stats);
  b.in.segment_start ? run<true>(scratch, b, s, pairs) : run<false>(scratch, b, s, pairs);
  check_launch("attention' of 64-wide heads");
  return true;
}

}  // namespace fairway::cuda
