// Gradient of the mix and norm at the head of a block, rows of 512 in bf16: a warp takes a row after another. Rows come by bulk
// copies into shared memory, two ahead, so that neither registers nor warps limit how much is on its way. The mix is made again
// from its two rows, which are needed anyway: one read less of eight.
#pragma once

#include "ops/cuda/columns.h"
#include "ops/cuda/sm90/warpgroup.cuh"

namespace fairway::cuda {

struct MixRows {
  const bf16 *x, *x0, *g_mixed, *g_normed;  // (M, 512); g_mixed and the gradients may be absent
  const float *mix, *rstd;                  // (2, 512), (M)
  bf16 *dx, *dx0;
  bool add_dx, add_dx0;
  unsigned rows;
  float scale;
};

inline constexpr int kMixWidth = 512;

// What a warp has of one row: x, x0, the gradients of normed and of mixed, and the two gradients where they are added to.
struct MixStage {
  static constexpr int kRows = 6;
  bf16 at[kRows][kMixWidth];
};

template <int Warps, int Stages>
struct MixShared {
  MixStage stages[Warps][Stages];
  float sums[Warps][2 * kMixWidth];
  sm90::Barrier landed[Warps][Stages];
};

__device__ inline void fetch_row(const MixRows& a, unsigned row, MixStage& to, sm90::Barrier& landed) {
  constexpr uint32_t kBytes = kMixWidth * sizeof(bf16);
  const int64_t at = int64_t{row} * kMixWidth;
  const bf16* from[MixStage::kRows] = {
      a.x, a.x0, a.g_normed, a.g_mixed, a.add_dx ? a.dx : nullptr, a.add_dx0 ? a.dx0 : nullptr};
  uint32_t bytes = 0;
#pragma unroll
  for (int i = 0; i < MixStage::kRows; ++i) bytes += from[i] != nullptr ? kBytes : 0;
  landed.expect(bytes);
#pragma unroll
  for (int i = 0; i < MixStage::kRows; ++i)
    if (from[i] != nullptr) sm90::load_bytes(to.at[i], from[i] + at, kBytes, landed);
}

__device__ inline void eight(const bf16* from, float (&x)[8]) {
  const auto pack = *reinterpret_cast<const Pack<bf16, 8>*>(from);
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = __bfloat162float(pack.at[k]);
}

// Weights of a lane's columns c … c+7, for x and for x0, and its sums of their gradients: the same ones in every row.
struct MixColumns {
  float weight[8], weight0[8], sum[8], sum0[8];

  __device__ void load(const float* mix, int c) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      weight[k] = mix[c + k], weight0[k] = mix[kMixWidth + c + k];
      sum[k] = sum0[k] = 0;
    }
  }
  __device__ float mixed(int k, const float (&x)[8], const float (&x0)[8]) const {
    return weight[k] * x[k] + weight0[k] * x0[k];
  }
};

// One lane's pieces c … c+7 of a row: gradients stored, column sums added to.
__device__ inline void mix_piece(const MixRows& a, const MixStage& s, MixColumns& columns, int64_t row, int c, float inverse,
                                 float along) {
  float x[8], x0[8], g[8], total[8], old[8];
  eight(s.at[0] + c, x);
  eight(s.at[1] + c, x0);
  eight(s.at[2] + c, g);
#pragma unroll
  for (int k = 0; k < 8; ++k) total[k] = a.scale * inverse * (g[k] - columns.mixed(k, x, x0) * inverse * along);
  if (a.g_mixed != nullptr) {
    eight(s.at[3] + c, g);
#pragma unroll
    for (int k = 0; k < 8; ++k) total[k] += g[k];
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) columns.sum[k] += total[k] * x[k], columns.sum0[k] += total[k] * x0[k];
  const auto leave = [&](bf16* to, const bf16* had, bool add, const float(&weights)[8]) {
    if (to == nullptr) return;
    if (add) eight(had + c, old);
    Pack<bf16, 8> out;
#pragma unroll
    for (int k = 0; k < 8; ++k) out.at[k] = __float2bfloat16_rn(weights[k] * total[k] + (add ? old[k] : 0.0f));
    *reinterpret_cast<Pack<bf16, 8>*>(to + row * kMixWidth + c) = out;
  };
  leave(a.dx, s.at[4], a.add_dx, columns.weight);
  leave(a.dx0, s.at[5], a.add_dx0, columns.weight0);
}

template <int Warps, int Stages>
__global__ void __launch_bounds__(32 * Warps) mix_rows_backward(MixRows a, Partials partials) {
  extern __shared__ __align__(128) char memory[];
  auto& shared = *reinterpret_cast<MixShared<Warps, Stages>*>(memory);
  const int lane = lane_id(), warp = warp_id();
  const unsigned stride = gridDim.x * Warps;
  if (lane == 0) {
    for (int s = 0; s < Stages; ++s) shared.landed[warp][s].init(1);
    sm90::publish_barriers();
  }
  __syncthreads();
  unsigned row = blockIdx.x * Warps + static_cast<unsigned>(warp);
  if (lane == 0)
    for (int s = 0; s < Stages; ++s)
      if (row + s * stride < a.rows) fetch_row(a, row + s * stride, shared.stages[warp][s], shared.landed[warp][s]);
  MixColumns columns[2];
#pragma unroll
  for (int p = 0; p < 2; ++p) columns[p].load(a.mix, p * 256 + lane * 8);
  unsigned phase = 0;
  for (int stage = 0; row < a.rows; row += stride) {
    const MixStage& s = shared.stages[warp][stage];
    const float inverse = a.rstd[row];
    shared.landed[warp][stage].wait(phase);
    float v[8], v0[8], d[8], along = 0;
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      const int c = p * 256 + lane * 8;
      eight(s.at[0] + c, v);
      eight(s.at[1] + c, v0);
      eight(s.at[2] + c, d);
#pragma unroll
      for (int k = 0; k < 8; ++k) along += columns[p].mixed(k, v, v0) * d[k];
    }
    along = warp_sum(along) * inverse / static_cast<float>(kMixWidth);
#pragma unroll
    for (int p = 0; p < 2; ++p) mix_piece(a, s, columns[p], row, p * 256 + lane * 8, inverse, along);
    __syncwarp();
    if (lane == 0 && row + Stages * stride < a.rows)
      fetch_row(a, row + Stages * stride, shared.stages[warp][stage], shared.landed[warp][stage]);
    if (++stage == Stages) stage = 0, phase ^= 1;
  }
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      shared.sums[warp][p * 256 + lane * 8 + k] = columns[p].sum[k];
      shared.sums[warp][kMixWidth + p * 256 + lane * 8 + k] = columns[p].sum0[k];
    }
  leave_partials(&shared.sums[0][0], Warps, partials);
}

}  // namespace fairway::cuda
