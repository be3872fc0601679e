// What attention's kernels of warps share: which rows see each other, products of a warp's rows with a tile, and how heads
// leave. A warp's sums of one product are its A operand of the next, so that weights and slopes stay in registers.
#pragma once

#include "ops/cuda/attention_warps.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/head_statistics.cuh"
#include "ops/cuda/warp_products.cuh"

namespace fairway::cuda::warp {

inline constexpr int kTurn = 64;           // rows of the other side in a turn
inline constexpr int kOwned = 128;         // rows that a block owns
inline constexpr int kSteps = kHead / 16;  // of a sum over a head

struct WarpHeads {
  int rows, length, heads, kv_heads;
  float scale;
  const bf16 *q, *k, *v;
  int64_t q_pitch, k_pitch, v_pitch;
  const int32_t* start;  // of each row's segment, or null
  __device__ int first(int row) const { return start != nullptr ? start[row] : row - row % length; }
  // One behind the last query that sees this key.
  __device__ int end(int key) const {
    if (start == nullptr) return key - key % length + length;
    int sees = key, not_seen = rows;
    while (not_seen - sees > 1) {
      const int middle = sees + (not_seen - sees) / 2;
      (start[middle] <= key ? sees : not_seen) = middle;
    }
    return not_seen;
  }
  // Place of a row and head in (B, H, T).
  __device__ int64_t statistic(int row, int head) const {
    const int of_sequence = start != nullptr ? rows : length, sequence = row / of_sequence;
    return (int64_t{sequence} * heads + head) * of_sequence + (row - sequence * of_sequence);
  }
};

inline WarpHeads warp_heads(const Attention& op, const Attention::In& in) {
  return {static_cast<int>(in.q.rows()),
          static_cast<int>(op.row_length),
          static_cast<int>(op.heads),
          static_cast<int>(op.kv_heads),
          static_cast<float>(op.scale),
          pointer<bf16>(in.q),
          pointer<bf16>(in.k),
          pointer<bf16>(in.v),
          pitch_of(in.q),
          pitch_of(in.k),
          pitch_of(in.v),
          pointer<int32_t>(in.segment_start)};
}
inline dim3 owner_blocks(int64_t rows, int64_t heads) {
  return {static_cast<unsigned>((rows + kOwned - 1) / kOwned), static_cast<unsigned>(heads)};
}

// Of the 16 rows of a sum a lane has this one and the eighth behind it.
__device__ inline int lane_row() { return lane_id() / 4; }
__device__ inline int lane_column() { return 2 * (lane_id() % 4); }

// A bf16 result of one head.
struct HeadSink {
  Sink<bf16> sink;
  int64_t pitch;
  __device__ void store(int row, int rows, int column, const Sum (&sums)[kHead / 8], float factor) const {
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int own = row + 8 * b;
      if (own >= rows) continue;
#pragma unroll
      for (int n = 0; n < kHead / 8; ++n) {
        const float pair[2] = {sums[n][2 * b] * factor, sums[n][2 * b + 1] * factor};
        sink.store(int64_t{own} * pitch + column + 8 * n + lane_column(), pair);
      }
    }
  }
};
inline HeadSink head_sink(const Tensor& t) { return {sink<bf16>(t), t ? pitch_of(t) : 0}; }

// sums (16·M rows × 8·N columns) = a·tileᵀ of its rows row …
template <int M, int N, int Rows>
__device__ void multiply_columns(Sum (&sums)[M][N], const Fragment (&a)[M][kSteps], const Tile<Rows>& tile, int row) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (float& x : sums[m][n]) x = 0;
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      Fragment b;
      load_columns(b, tile, row + 8 * n, step);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add(sums[m][n], a[m][step], b[0], b[1]);
        multiply_add(sums[m][n + 1], a[m][step], b[2], b[3]);
      }
    }
}
// sums += a·(rows row … of the tile), a of 16·M × 16·K.
template <int M, int K, int Rows>
__device__ void add_terms(Sum (&sums)[M][kHead / 8], const Fragment (&a)[M][K], const Tile<Rows>& tile, int row) {
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int n = 0; n < kHead / 8; n += 2) {
      Fragment b;
      load_terms(b, tile, row + 16 * k, n / 2);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add(sums[m][n], a[m][k], b[0], b[1]);
        multiply_add(sums[m][n + 1], a[m][k], b[2], b[3]);
      }
    }
}
template <int M, int Rows>
__device__ void load_owned(Fragment (&to)[M][kSteps], const Tile<Rows>& tile, int row) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int step = 0; step < kSteps; ++step) load_rows(to[m][step], tile, row + 16 * m, step);
}

// Queries that a warp owns, and the keys they see.
template <int M>
struct Queries {
  int row;               // the warp's first
  int start[M][2];       // of the segments of the lane's rows
  int earliest, latest;  // start of all of the warp's rows
  __device__ Queries(const WarpHeads& a, int first_row) : row(first_row) {
    const int last = a.rows - 1;
    earliest = a.first(min(row, last));
    latest = a.first(min(row + 16 * M - 1, last));
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int b = 0; b < 2; ++b) start[m][b] = a.first(min(row + 16 * m + lane_row() + 8 * b, last));
  }
  // Of keys key … key+count−1: whether one is seen, and whether one is not.
  __device__ bool some(int key, int count) const { return key < row + 16 * M && key + count > earliest; }
  __device__ bool cut(int key, int count) const { return key + count - 1 > row || key < latest; }
  __device__ bool sees(int m, int b, int key) const { return key <= row + 16 * m + lane_row() + 8 * b && key >= start[m][b]; }
};

inline constexpr int kQueryWarps = 4, kQueryThreads = 32 * kQueryWarps, kQueryTiles = kOwned / (16 * kQueryWarps);

struct KeyTiles {
  Tile<kTurn> k[2], v[2];  // two turns
};
__device__ inline void copy_keys(KeyTiles& to, int turn, const WarpHeads& a, int kv_head, int key) {
  copy_rows<kTurn, kQueryThreads>(to.k[turn % 2], a.k + kv_head * kHead, a.k_pitch, key, a.rows);
  copy_rows<kTurn, kQueryThreads>(to.v[turn % 2], a.v + kv_head * kHead, a.v_pitch, key, a.rows);
  commit_copies();
}

// The block's queries, longest walks first, and its first key.
struct QueryBlock {
  int head, kv_head, row, first_key, turns;
  __device__ explicit QueryBlock(const WarpHeads& a) {
    head = static_cast<int>(blockIdx.y);
    kv_head = head / (a.heads / a.kv_heads);
    row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kOwned;
    first_key = a.first(row) / kTurn * kTurn;
    turns = (min(row + kOwned, a.rows) - first_key + kTurn - 1) / kTurn;
  }
};

}  // namespace fairway::cuda::warp
