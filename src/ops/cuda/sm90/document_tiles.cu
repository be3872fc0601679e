#include "ops/cuda/sm90/document_tiles.cuh"

#include "ops/cuda/elements.cuh"

namespace fairway::cuda {

DocumentTiles document_tiles(Scratch& scratch, const Attention& op, const Attention::In& in) {
  if (!in.segment_start) return {};
  const SegmentTilesLayout at(in.q.rows(), op.row_length);
  const int32_t* words = pointer<int32_t>(in.tiles);
  if (words == nullptr) {
    auto* made = scratch.take<int32_t>(at.words());
    cut_segments(scratch, pointer<int32_t>(in.segment_start), at, op.row_length, made);
    words = made;
  }
  return {reinterpret_cast<const SegmentTile*>(words + at.tiles()),
          words + at.order(),
          words + at.count(),
          words + at.ends(),
          words + at.slots(),
          static_cast<int>(at.most)};
}

}  // namespace fairway::cuda
