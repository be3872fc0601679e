#include "ops/cuda/sm90/attention_shape.cuh"

#include "ops/cuda/attention_tiles.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/sm90/tensor_map.h"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {

bool suits_attention_tiles(const Context& context, const Attention& op, const Attention::In& in) {
  const int64_t length = in.segment_start ? in.q.rows() : op.row_length;
  return context.path() == KernelPath::sm90 && in.q.spec.dtype == DType::bf16 && in.q.cols() == op.heads * sm90::kTile &&
         length % kPair == 0 && op.row_length >= kPair && in.q.rows() * op.heads < (int64_t{1} << 29) && aligned_rows(in.q) &&
         aligned_rows(in.k) && aligned_rows(in.v);
}

HeadShape head_shape(const Attention& op, const Attention::In& in) {
  return {static_cast<int>(in.segment_start ? in.q.rows() : op.row_length),
          static_cast<int>(op.heads),
          static_cast<int>(op.kv_heads),
          static_cast<float>(op.scale),
          pointer<int32_t>(in.segment_start),
          static_cast<int>(op.row_length)};
}

CUtensorMap tile_map(const Tensor& rows) {
  const int64_t sizes[] = {rows.cols(), rows.rows()}, pitch = pitch_of(rows), box[] = {sm90::kTile, sm90::kTile};
  return tensor_map(rows.data, sizes, {&pitch, 1}, box);
}

}  // namespace fairway::cuda
