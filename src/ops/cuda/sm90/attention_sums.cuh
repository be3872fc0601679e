// What attention's gradient reads and leaves besides tiles of bf16: statistics of queries, and dq while it is summed in
// float32.
#pragma once

#include "ops/cuda/elements.cuh"
#include "ops/cuda/head_statistics.cuh"
#include "ops/cuda/sm90/document_tiles.cuh"

namespace fairway::cuda {

// Room for the statistics of all rows, in scratch memory. Those of packed documents lie as their tiles do.
HeadStatistics head_statistics(Scratch& scratch, const HeadShape& s, const DocumentTiles& documents, const Tensor& lse);
// Fills them from rows of heads a and b with Σ a·b = along.
void gather_statistics(Scratch& scratch, const HeadStatistics& statistics, const Tensor& a, const Tensor& b);

// Rows of a gradient, all heads beside each other.
struct Places {
  Sink<bf16> sink;
  int64_t pitch;
  // Rows row … row+63 of the head at `column` as far as they lie before `end`, this warpgroup's accumulator times factor.
  __device__ void store(int row, int end, int column, const sm90::Accumulator& d, float factor) const {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4, lane = lane_id();
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int own = row + 16 * warp + lane / 4 + 8 * b;
      if (own >= end) continue;
      const int64_t at = int64_t{own} * pitch + column + 2 * (lane % 4);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float pair[2] = {d[4 * j + 2 * b] * factor, d[4 * j + 2 * b + 1] * factor};
        sink.store(at + 8 * j, pair);
      }
    }
  }
};
inline Places places(const Tensor& gradient) { return {sink<bf16>(gradient), gradient ? pitch_of(gradient) : 0}; }

// dq as it is summed: tiles of 64 queries of a head, in each row the pieces of 8 in the order piece ^ (row % 8), by which a
// warpgroup writes its accumulator without bank conflicts.
inline constexpr int kPiece = 8, kPieces = sm90::kTile / kPiece;
struct alignas(128) FloatTile {
  float at[sm90::kTile * sm90::kTile];
};

struct Sums {
  FloatTile* tiles;  // (B, H, slots/64)
  int* added;        // (B, H, slots/128): blocks of keys that have added to these queries
  int* ticket;       // blocks of keys that were begun
};
// dq = scale·sums.
void round_sums(Scratch& scratch, const HeadShape& s, const HeadStatistics& slots, const Sums& sums, const Tensor& dq);

}  // namespace fairway::cuda
