// Kernels over whole rows of bf16 heads of 64, a warp for each row: eight lanes share a head, so a lane holds the same piece of
// every head it sees and asks for all of them, 16 bytes each, before it uses one. S·4 heads are S pieces a lane.
#pragma once

#include "ops/cuda/columns.h"
#include "ops/cuda/head_statistics.cuh"
#include "ops/head_output.h"

namespace fairway::cuda {

using Piece = Pack<bf16, 8>;

__device__ inline Piece piece_at(const bf16* row, int index) { return reinterpret_cast<const Piece*>(row)[index]; }
__device__ inline void put_piece(bf16* row, int index, const float (&x)[8]) {
  Piece out;
#pragma unroll
  for (int k = 0; k < 8; ++k) out.at[k] = __float2bfloat16_rn(x[k]);
  reinterpret_cast<Piece*>(row)[index] = out;
}
__device__ inline void widen(const Piece& piece, float (&x)[8]) {
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = __bfloat162float(piece.at[k]);
}
__device__ inline float dot8(const float (&a)[8], const float (&b)[8]) {
  float total = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) total += a[k] * b[k];
  return total;
}
// The piece of the lane `distance` (a power of two) away.
__device__ inline Piece from_lane(const Piece& piece, int distance) {
  union {
    Piece piece;
    unsigned words[4];
  } mine{piece}, theirs;
#pragma unroll
  for (int w = 0; w < 4; ++w) theirs.words[w] = __shfl_xor_sync(~0u, mine.words[w], distance);
  return theirs.piece;
}

struct RopeRows {
  const bf16 *q, *k;                    // rows of `pitch_q` and `pitch_k` elements
  const float *rstd_q, *rstd_k, *gain;  // (M, heads), (M, kv heads), (heads)
  const float* angles;                  // (T, R): cosines, then sines
  unsigned rows, row_length, pitch_q, pitch_k, rotated;
  float eps;
};

// Cosines and signed sines of a lane's piece; those behind the rotated channels have none.
struct PieceTurn {
  float cosine[8], sine[8];
  int distance;
  bool turns;

  __device__ PieceTurn(const RopeRows& a, unsigned row, float direction) {
    const unsigned piece = lane_id() % 8, half = a.rotated / 16;  // pieces
    distance = static_cast<int>(half);
    turns = piece < 2 * half;
    if (!turns) return;
    const float* at = a.angles + (row % a.row_length) * a.rotated + (piece < half ? piece : piece - half) * 8;
    const float side = piece < half ? direction : -direction;
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
      const auto c = *reinterpret_cast<const float4*>(at + k), s = *reinterpret_cast<const float4*>(at + a.rotated / 2 + k);
      cosine[k] = c.x, cosine[k + 1] = c.y, cosine[k + 2] = c.z, cosine[k + 3] = c.w;
      sine[k] = side * s.x, sine[k + 1] = side * s.y, sine[k + 2] = side * s.z, sine[k + 3] = side * s.w;
    }
  }
  __device__ void apply(const Piece& own, float (&x)[8]) const {
    float other[8];
    widen(from_lane(own, distance), other);
    if (!turns) return;
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = x[k] * cosine[k] + other[k] * sine[k];
  }
};

// Q·4 query heads and K·4 key heads.
template <int Q, int K>
__global__ void __launch_bounds__(kThreads)
    rope_rows_forward(RopeRows a, bf16* out_q, bf16* out_k, float* rstd_q, float* rstd_k) {
  const int lane = lane_id(), head = lane / 8;
  const unsigned row = blockIdx.x * kWarps + static_cast<unsigned>(warp_id());
  if (row >= a.rows) return;
  Piece x[Q + K];
#pragma unroll
  for (int s = 0; s < Q + K; ++s)
    x[s] = s < Q ? piece_at(a.q + int64_t{row} * a.pitch_q, 32 * s + lane)
                 : piece_at(a.k + int64_t{row} * a.pitch_k, 32 * (s - Q) + lane);
  const PieceTurn turn(a, row, 1);
#pragma unroll
  for (int s = 0; s < Q + K; ++s) {
    float v[8];
    widen(x[s], v);
    const float inverse = 1.0f / sqrtf(group_sum<8>(dot8(v, v)) / 64.0f + a.eps);
    const float scale = s < Q ? inverse * a.gain[4 * s + head] : inverse;
    turn.apply(x[s], v);
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] *= scale;
    if (s < Q)
      put_piece(out_q + int64_t{row} * (Q * 256), 32 * s + lane, v);
    else
      put_piece(out_k + int64_t{row} * (K * 256), 32 * (s - Q) + lane, v);
    if (lane % 8 != 0) continue;
    if (s < Q)
      rstd_q[row * (4 * Q) + 4 * s + head] = inverse;
    else
      rstd_k[row * (4 * K) + 4 * (s - Q) + head] = inverse;
  }
}

struct RopeRowGradients {
  bf16 *q, *k;
  unsigned pitch_q, pitch_k;
};

// With s = Σ Rᵀg·x̂: dgain += s, dx = r·(gain·Rᵀg − x̂·gain·s/64). A lane's heads are always the same, so dgain is summed in
// registers; each block leaves a partial row.
template <int Q, int K>
__global__ void __launch_bounds__(kThreads)
    rope_rows_backward(RopeRows a, const bf16* grad_q, const bf16* grad_k, RopeRowGradients to, Partials partials) {
  __shared__ float accumulators[kWarps * 4 * Q];
  const int lane = lane_id(), head = lane / 8;
  float gain[Q], sums[Q] = {};
#pragma unroll
  for (int s = 0; s < Q; ++s) gain[s] = a.gain[4 * s + head];
  for (unsigned row = blockIdx.x * kWarps + static_cast<unsigned>(warp_id()); row < a.rows; row += gridDim.x * kWarps) {
    Piece x[Q + K], g[Q + K];
    float inverse[Q + K];
#pragma unroll
    for (int s = 0; s < Q + K; ++s) {
      x[s] = s < Q ? piece_at(a.q + int64_t{row} * a.pitch_q, 32 * s + lane)
                   : piece_at(a.k + int64_t{row} * a.pitch_k, 32 * (s - Q) + lane);
      g[s] = s < Q ? piece_at(grad_q + int64_t{row} * (Q * 256), 32 * s + lane)
                   : piece_at(grad_k + int64_t{row} * (K * 256), 32 * (s - Q) + lane);
      inverse[s] = s < Q ? a.rstd_q[row * (4 * Q) + 4 * s + head] : a.rstd_k[row * (4 * K) + 4 * (s - Q) + head];
    }
    const PieceTurn turn(a, row, -1);
#pragma unroll
    for (int s = 0; s < Q + K; ++s) {
      float v[8], d[8];
      widen(x[s], v);
      widen(g[s], d);
      turn.apply(g[s], d);
      const float along = group_sum<8>(dot8(d, v)) * inverse[s], scale = s < Q ? inverse[s] * gain[s < Q ? s : 0] : inverse[s];
      if (s < Q) sums[s < Q ? s : 0] += along;
      const float share = inverse[s] * along / 64.0f;
#pragma unroll
      for (int k = 0; k < 8; ++k) d[k] = scale * (d[k] - v[k] * share);
      if (s < Q)
        put_piece(to.q + int64_t{row} * to.pitch_q, 32 * s + lane, d);
      else
        put_piece(to.k + int64_t{row} * to.pitch_k, 32 * (s - Q) + lane, d);
    }
  }
  if (lane % 8 == 0) {
#pragma unroll
    for (int s = 0; s < Q; ++s) accumulators[warp_id() * 4 * Q + 4 * s + head] = sums[s];
  }
  leave_partials(accumulators, kWarps, partials);
}

struct OutputRows {
  const bf16* v;       // rows of `pitch` elements, 4 heads; null: nothing is taken away
  const float* logit;  // null: no gate
  unsigned rows, pitch;
  static constexpr float kNormFloor = 1e-12f, kGateScale = static_cast<float>(HeadOutput::kGateScale);
  __device__ float open(unsigned head) const { return logit != nullptr ? sigmoid(kGateScale * logit[head]) : 1.0f; }
};

// 4 kv heads with G query heads each: a lane's pieces belong to the value it holds.
template <int G, bool Exclusive>
__global__ void __launch_bounds__(kThreads) output_rows_forward(OutputRows o, const bf16* y, bf16* z, float* saved_dot) {
  const int lane = lane_id(), head = lane / 8;
  const unsigned row = blockIdx.x * kWarps + static_cast<unsigned>(warp_id());
  if (row >= o.rows) return;
  const int64_t wide = int64_t{row} * (G * 256);
  Piece v{}, x[G];
  float s[G];
  if constexpr (Exclusive) v = piece_at(o.v + int64_t{row} * o.pitch, lane);
#pragma unroll
  for (int h = 0; h < G; ++h) {
    x[h] = piece_at(y + wide, (head * G + h) * 8 + lane % 8);
    s[h] = o.open(row * (4 * G) + head * G + h);
  }
  float u[8];
  widen(v, u);
  const float inverse = 1.0f / fmaxf(sqrtf(group_sum<8>(dot8(u, u))), OutputRows::kNormFloor);
#pragma unroll
  for (int h = 0; h < G; ++h) {
    float t[8];
    widen(x[h], t);
    const float c = Exclusive ? group_sum<8>(dot8(t, u)) * inverse : 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) t[k] = s[h] * (t[k] - c * u[k] * inverse);
    put_piece(z + wide, (head * G + h) * 8 + lane % 8, t);
    if (lane % 8 == 0) saved_dot[row * (4 * G) + head * G + h] = c;
  }
}

struct OutputRowGradients {
  const bf16 *z, *dz;
  const float* dot;
  Sink<bf16> dy, dv;
  Sink<float> dlogit;
  unsigned v_pitch;  // of dv
  HeadStatistics statistics;
};

// dy = s(g − q·u), dv = −(1/‖v‖)·Σ_h [q·z + c·s(g − q·u)] with q = g·u; where the norm is at its floor it is a constant. What
// dv had is added to. dlogit = ½(1−s)(g·z).
template <int G, bool Exclusive>
__global__ void __launch_bounds__(kThreads) output_rows_backward(OutputRows o, OutputRowGradients d) {
  const int lane = lane_id(), head = lane / 8;
  const unsigned row = blockIdx.x * kWarps + static_cast<unsigned>(warp_id());
  if (row >= o.rows) return;
  const int64_t wide = int64_t{row} * (G * 256);
  Piece v{}, g[G], out[G];
  float c[G], s[G];
  if constexpr (Exclusive) v = piece_at(o.v + int64_t{row} * o.pitch, lane);
#pragma unroll
  for (int h = 0; h < G; ++h) {
    g[h] = piece_at(d.dz + wide, (head * G + h) * 8 + lane % 8);
    out[h] = piece_at(d.z + wide, (head * G + h) * 8 + lane % 8);
    c[h] = d.dot[row * (4 * G) + head * G + h];
    s[h] = o.open(row * (4 * G) + head * G + h);
  }
  float u[8], total[8] = {};
  widen(v, u);
  const float norm = sqrtf(group_sum<8>(dot8(u, u))), inverse = 1.0f / fmaxf(norm, OutputRows::kNormFloor);
  const float back = norm <= OutputRows::kNormFloor ? 1.0f : -1.0f;
#pragma unroll
  for (int h = 0; h < G; ++h) {
    float x[8], w[8];
    widen(g[h], x);
    widen(out[h], w);
    const float along = group_sum<8>(dot8(x, w));
    if (lane % 8 == h) {
      d.statistics.put(row, head * G + h, along);
      d.dlogit.put(row * (4 * G) + head * G + h, OutputRows::kGateScale * (1 - s[h]) * along);
    }
    const float q = Exclusive ? group_sum<8>(dot8(x, u)) * inverse : 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float on_value = s[h] * q * u[k] * inverse, own = s[h] * x[k];
      total[k] += q * w[k] + c[h] * (own + back * on_value);
      x[k] = own - on_value;
    }
    d.dy.store(wide + (head * G + h) * 64 + lane % 8 * 8, x);
  }
  if constexpr (Exclusive) {
#pragma unroll
    for (int k = 0; k < 8; ++k) total[k] *= -inverse;
    d.dv.store(int64_t{row} * d.v_pitch + lane * 8, total);
  }
}

}  // namespace fairway::cuda
