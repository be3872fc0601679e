// Causal attention over heads of 64 in bf16 on Hopper's tensor cores: y = softmax(scale·qkᵀ)·v with running maxima. A warpgroup
// owns 64 queries; keys and values stream through shared memory 128 at a time, and the scores of the next are multiplied while
// the weights of one are computed.
#include "ops/cuda/attention_tiles.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/sm90/attention_shape.cuh"

namespace fairway::cuda {
namespace {

using namespace sm90;

constexpr float kLog2E = 1.4426950408889634f;

struct Shared {
  static constexpr int kStages = 4;
  Tile q[2], k[kStages][2], v[kStages][2];
  Pipe<kStages> pipe;
};
struct Maps {
  CUtensorMap q, k, v;
};

// Of a thread's two rows: the largest score and the sum of weights so far, this thread's columns only.
struct Rows {
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
};

__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Scores of keys that a query does not see become −∞.
template <bool Segmented>
__device__ void hide(WideAccumulator& scores, const HeadShape& s, int query, int key) {
  if (key + kPair <= query && !(Segmented && s.start[query + kTile - 1] > key)) return;
  const int lane = lane_id(), row = query + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
  const int first[2] = {Segmented ? s.start[row] : 0, Segmented ? s.start[row + 8] : 0};
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    const int of_key = key + 8 * (i / 4) + 2 * (lane % 4) + i % 2, b = i / 2 % 2;
    if (of_key > row + 8 * b || (Segmented && of_key < first[b])) scores[i] = -INFINITY;
  }
}

// The weights of 128 keys; y's rows shrink to the new maxima by the factors in `shrink`.
__device__ inline void weigh(Fragment (&to)[2], const WideAccumulator& scores, Rows& rows, float c, float (&shrink)[2]) {
  float from[2], total[4] = {0, 0, 0, 0};
#pragma unroll
  for (int b = 0; b < 2; ++b) {
    float top = rows.top[b];
#pragma unroll
    for (int j = 0; j < 16; ++j) top = fmaxf(top, fmaxf(scores[4 * j + 2 * b], scores[4 * j + 2 * b + 1]));
    top = quad_max(top);
    from[b] = top == -INFINITY ? 0.0f : top * c;
    shrink[b] = exp2_fast(fmaf(rows.top[b], c, -from[b]));
    rows.top[b] = top;
  }
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    float p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      p[i] = exp2_fast(fmaf(scores[4 * j + i], c, -from[i / 2]));
      total[i] += p[i];
    }
    round_four(to[j / 8], j % 8, p);
  }
#pragma unroll
  for (int b = 0; b < 2; ++b) rows.total[b] = rows.total[b] * shrink[b] + (total[2 * b] + total[2 * b + 1]);
}

template <bool Segmented>
__global__ void __launch_bounds__(kBlockThreads, 1)
    forward_kernel(const __grid_constant__ Maps maps, const HeadShape s, bf16* y, float* lse) {
  extern __shared__ std::byte memory[];
  auto& shared = tiles_of<Shared>(memory);
  auto& pipe = shared.pipe;
  pipe.init();
  const int sequence = static_cast<int>(blockIdx.x) / s.heads, head = static_cast<int>(blockIdx.x) % s.heads;
  const int kv_head = head / (s.heads / s.kv_heads), base = sequence * s.length;
  const int first_query = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kPair;  // the longest first
  const int first_key = Segmented ? s.start[first_query] / kPair * kPair : 0, pairs = (first_query - first_key) / kPair + 1;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    give_registers<24>();
    if (threadIdx.x != 0) return;
    pipe.fixed.expect(2 * kTileBytes);
    load_pair(shared.q, maps.q, head * kTile, base + first_query, pipe.fixed);
    for (int turn = 0; turn < pairs; ++turn) {
      const int stage = pipe.to_fill(turn, 4 * kTileBytes), key = base + first_key + turn * kPair;
      load_pair(shared.k[stage], maps.k, kv_head * kTile, key, pipe.full[stage]);
      load_pair(shared.v[stage], maps.v, kv_head * kTile, key, pipe.full[stage]);
    }
    return;
  }
  take_registers<240>();
  const int query = first_query + (warpgroup - 1) * kTile;
  const float c = s.scale * kLog2E;
  const Tile& q = shared.q[warpgroup - 1];
  WideAccumulator even, odd;
  Accumulator sum = {};
  Rows rows;
  // `scores` are done when a turn begins; those of the next are when it ends, and its values are being added.
  const auto take = [&]<bool Last>(WideAccumulator& scores, WideAccumulator& next, int turn) {
    if constexpr (!Last) multiply_rows(next, q, shared.k[pipe.filled(turn + 1)]);
    Fragment weights[2];
    float shrink[2];
    hide<Segmented>(scores, s, query, first_key + turn * kPair);
    weigh(weights, scores, rows, c, shrink);
    wgmma_wait<Last ? 0 : 1>();  // the values of the turn before
    pin(sum);
    if (turn > 0) pipe.release((turn - 1) % Shared::kStages);
#pragma unroll
    for (int i = 0; i < 32; ++i) sum[i] *= shrink[i / 2 % 2];
    add_product(sum, weights[0], shared.v[turn % Shared::kStages][0]);
    add_product(sum, weights[1], shared.v[turn % Shared::kStages][1]);
    if constexpr (!Last) {
      wgmma_wait<2>();
      pin(next);
    }
  };
  pipe.fixed.wait(0);
  multiply_rows(even, q, shared.k[pipe.filled(0)]);
  wgmma_wait<0>();
  pin(even);
  int turn = 0;
  for (; turn + 2 < pairs; turn += 2) {
    take.template operator()<false>(even, odd, turn);
    take.template operator()<false>(odd, even, turn + 1);
  }
  if (turn + 1 < pairs) {
    take.template operator()<false>(even, odd, turn);
    take.template operator()<true>(odd, even, turn + 1);
  } else {
    take.template operator()<true>(even, odd, turn);
  }
  wgmma_wait<0>();
  pin(sum);
  const int lane = lane_id(), row = base + query + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int b = 0; b < 2; ++b) {
    const float total = quad_sum(rows.total[b]), factor = 1.0f / total;
    if (lane % 4 == 0) lse[s.statistic(row + 8 * b, head)] = rows.top[b] * s.scale + logf(total);
    bf16* to = y + (int64_t{row + 8 * b} * s.heads + head) * kTile + 2 * (lane % 4);
#pragma unroll
    for (int j = 0; j < 8; ++j)
      *reinterpret_cast<uint32_t*>(to + 8 * j) = pack(sum[4 * j + 2 * b] * factor, sum[4 * j + 2 * b + 1] * factor);
  }
}

}  // namespace

void attention_tiles_forward(Scratch& scratch, const Attention& op, const Forward<Attention>& f) {
  const HeadShape s = head_shape(op, f.in);
  const Maps maps{tile_map(f.in.q), tile_map(f.in.k), tile_map(f.in.v)};
  const dim3 grid(static_cast<unsigned>(f.in.q.rows() / s.length * s.heads), static_cast<unsigned>(s.length / kPair));
  launch_tiles<Shared>(scratch, f.in.segment_start ? forward_kernel<true> : forward_kernel<false>, grid, maps, s,
                       pointer<bf16>(f.out.y), pointer<float>(f.saved.lse));
  check_launch("attention of 64-wide heads");
}

}  // namespace fairway::cuda
