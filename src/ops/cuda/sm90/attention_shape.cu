#include "ops/cuda/sm90/attention_shape.cuh"

#include "base/error.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {

bool suits_sm90(const Attention& op, const Attention::In& in) {
  const int64_t length = in.segment_start ? in.q.rows() : op.row_length;
  const auto aligned = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && pitch_of(t) % 8 == 0; };
  return in.q.spec.dtype == DType::bf16 && in.q.cols() == op.heads * sm90::kTile && length % (2 * sm90::kTile) == 0 &&
         in.q.rows() * op.heads < (int64_t{1} << 31) && aligned(in.q) && aligned(in.k) && aligned(in.v);
}

HeadShape head_shape(const Attention& op, const Attention::In& in) {
  return {static_cast<int>(in.segment_start ? in.q.rows() : op.row_length), static_cast<int>(op.heads),
          static_cast<int>(op.kv_heads), static_cast<float>(op.scale), pointer<int32_t>(in.segment_start)};
}

CUtensorMap tile_map(const Tensor& rows) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {  // from the driver, so that the program starts where there is none
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
          "cudaGetDriverEntryPointByVersion");
    if (found == nullptr)
      throw WorkError("the CUDA driver has no cuTensorMapEncodeTiled: one of version 12 or later is needed");
    return reinterpret_cast<Encode>(found);
  }();
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(rows.cols()), static_cast<cuuint64_t>(rows.rows())};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(pitch_of(rows)) * sizeof(bf16)};
  const cuuint32_t box[] = {sm90::kTile, sm90::kTile}, steps[] = {1, 1};
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, rows.data, sizes, pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw WorkError("a tensor map of " + std::to_string(rows.rows()) + " x " + std::to_string(rows.cols()) + " was refused");
  return map;
}

}  // namespace fairway::cuda
