// SegmentTiles as attention's kernels read them.
#pragma once

#include "ops/cuda/segment_tiles.h"
#include "ops/cuda/sm90/attention_shape.cuh"

namespace fairway::cuda {

static_assert(SegmentTiles::kRows == kPair);

struct DocumentTiles {
  const SegmentTile* tiles = nullptr;  // in the order of rows; null: whole sequences
  const int* order = nullptr;
  const int* count = nullptr;
  const int* ends = nullptr;   // (T) where each row's document ends
  const int* slots = nullptr;  // (T) where each row lies among those of all tiles
  int most = 0;                // tiles that there may be
  __device__ const SegmentTile& next(int item) const { return tiles[order[item]]; }
};

// None without segments.
DocumentTiles document_tiles(Scratch& scratch, const Attention& op, const Attention::In& in);

}  // namespace fairway::cuda
