// Gradient of the mix and norm at the head of a block, rows of 512 in bf16: a warp takes a row after another. Rows come by bulk
// copies into shared memory, two ahead, so that neither registers nor warps limit how much is on its way.
#pragma once

#include "ops/cuda/columns.h"
#include "ops/cuda/sm90/warpgroup.cuh"

namespace fairway::cuda {

struct MixRows {
  const bf16 *x, *x0, *mixed, *g_mixed, *g_normed;  // (M, 512); g_mixed and the gradients may be absent
  const float *mix, *rstd;                          // (2, 512), (M)
  bf16 *dx, *dx0;
  bool add_dx, add_dx0;
  unsigned rows;
  float scale;
};

inline constexpr int kMixWidth = 512;

// What a warp has of one row: five tensors, and the two gradients where they are added to.
struct MixStage {
  bf16 at[7][kMixWidth];
};

template <int Warps, int Stages>
struct MixShared {
  MixStage stages[Warps][Stages];
  float sums[Warps][2 * kMixWidth];
  float mix[2 * kMixWidth];
  sm90::Barrier landed[Warps][Stages];
};

__device__ inline void fetch_row(const MixRows& a, unsigned row, MixStage& to, sm90::Barrier& landed) {
  constexpr uint32_t kBytes = kMixWidth * sizeof(bf16);
  const int64_t at = int64_t{row} * kMixWidth;
  const bf16* from[7] = {a.x, a.x0, a.mixed, a.g_normed, a.g_mixed, a.add_dx ? a.dx : nullptr, a.add_dx0 ? a.dx0 : nullptr};
  uint32_t bytes = 0;
#pragma unroll
  for (int i = 0; i < 7; ++i) bytes += from[i] != nullptr ? kBytes : 0;
  landed.expect(bytes);
#pragma unroll
  for (int i = 0; i < 7; ++i)
    if (from[i] != nullptr) sm90::load_bytes(to.at[i], from[i] + at, kBytes, landed);
}

__device__ inline void eight(const bf16* from, float (&x)[8]) {
  const auto pack = *reinterpret_cast<const Pack<bf16, 8>*>(from);
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = __bfloat162float(pack.at[k]);
}

// One lane's pieces c … c+7 of a row: gradients stored, column sums added to `sums`.
__device__ inline void mix_piece(const MixRows& a, const MixStage& s, const float* mix, int64_t row, int c, float inverse,
                                 float along, float (&sums)[8], float (&sums0)[8]) {
  float x[8], x0[8], mixed[8], g[8], total[8], old[8];
  eight(s.at[2] + c, mixed);
  eight(s.at[3] + c, g);
#pragma unroll
  for (int k = 0; k < 8; ++k) total[k] = a.scale * inverse * (g[k] - mixed[k] * inverse * along);
  if (a.g_mixed != nullptr) {
    eight(s.at[4] + c, g);
#pragma unroll
    for (int k = 0; k < 8; ++k) total[k] += g[k];
  }
  eight(s.at[0] + c, x);
  eight(s.at[1] + c, x0);
#pragma unroll
  for (int k = 0; k < 8; ++k) sums[k] += total[k] * x[k], sums0[k] += total[k] * x0[k];
  const auto leave = [&](bf16* to, const bf16* had, bool add, const float* weights) {
    if (to == nullptr) return;
    if (add) eight(had + c, old);
    Pack<bf16, 8> out;
#pragma unroll
    for (int k = 0; k < 8; ++k) out.at[k] = __float2bfloat16_rn(weights[c + k] * total[k] + (add ? old[k] : 0.0f));
    *reinterpret_cast<Pack<bf16, 8>*>(to + row * kMixWidth + c) = out;
  };
  leave(a.dx, s.at[5], a.add_dx, mix);
  leave(a.dx0, s.at[6], a.add_dx0, mix + kMixWidth);
}

template <int Warps, int Stages>
__global__ void __launch_bounds__(32 * Warps) mix_rows_backward(MixRows a, Partials partials) {
  extern __shared__ __align__(128) char memory[];
  auto& shared = *reinterpret_cast<MixShared<Warps, Stages>*>(memory);
  const int lane = lane_id(), warp = warp_id();
  const unsigned stride = gridDim.x * Warps;
  for (int c = static_cast<int>(threadIdx.x); c < 2 * kMixWidth; c += 32 * Warps) shared.mix[c] = a.mix[c];
  if (lane == 0) {
    for (int s = 0; s < Stages; ++s) shared.landed[warp][s].init(1);
    sm90::publish_barriers();
  }
  __syncthreads();
  unsigned row = blockIdx.x * Warps + static_cast<unsigned>(warp);
  if (lane == 0)
    for (int s = 0; s < Stages; ++s)
      if (row + s * stride < a.rows) fetch_row(a, row + s * stride, shared.stages[warp][s], shared.landed[warp][s]);
  float sums[2][8] = {}, sums0[2][8] = {};
  unsigned phase = 0;
  for (int stage = 0; row < a.rows; row += stride) {
    const MixStage& s = shared.stages[warp][stage];
    const float inverse = a.rstd[row];
    shared.landed[warp][stage].wait(phase);
    float v[8], d[8], along = 0;
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      eight(s.at[2] + p * 256 + lane * 8, v);
      eight(s.at[3] + p * 256 + lane * 8, d);
#pragma unroll
      for (int k = 0; k < 8; ++k) along += v[k] * d[k];
    }
    along = warp_sum(along) * inverse / static_cast<float>(kMixWidth);
#pragma unroll
    for (int p = 0; p < 2; ++p) mix_piece(a, s, shared.mix, row, p * 256 + lane * 8, inverse, along, sums[p], sums0[p]);
    __syncwarp();
    if (lane == 0 && row + Stages * stride < a.rows)
      fetch_row(a, row + Stages * stride, shared.stages[warp][stage], shared.landed[warp][stage]);
    if (++stage == Stages) stage = 0, phase ^= 1;
  }
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      shared.sums[warp][p * 256 + lane * 8 + k] = sums[p][k];
      shared.sums[warp][kMixWidth + p * 256 + lane * 8 + k] = sums0[p][k];
    }
  leave_partials(&shared.sums[0][0], Warps, partials);
}

}  // namespace fairway::cuda
