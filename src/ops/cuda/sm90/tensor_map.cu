#include "ops/cuda/sm90/tensor_map.h"

#include "base/error.h"

namespace fairway::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// From the driver, so that the program starts where there is none.
Encode encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
        "cudaGetDriverEntryPointByVersion");
  if (found == nullptr) throw WorkError("the CUDA driver has no cuTensorMapEncodeTiled: one of version 12 or later is needed");
  return reinterpret_cast<Encode>(found);
}

}  // namespace

CUtensorMap tensor_map(const void* data, std::span<const int64_t> sizes, std::span<const int64_t> pitches,
                       std::span<const int64_t> box) {
  static const Encode encode = encoder();
  constexpr size_t kMost = 5;
  cuuint64_t size[kMost]{}, bytes[kMost]{};
  cuuint32_t wanted[kMost]{}, steps[kMost]{};
  FAIRWAY_ASSERT(sizes.size() <= kMost && pitches.size() + 1 == sizes.size() && box.size() == sizes.size(),
                 "axes of a tensor map do not match");
  for (size_t i = 0; i < sizes.size(); ++i) {
    size[i] = static_cast<cuuint64_t>(sizes[i]);
    wanted[i] = static_cast<cuuint32_t>(box[i]);
    steps[i] = 1;
    if (i > 0) bytes[i - 1] = static_cast<cuuint64_t>(pitches[i - 1]) * 2;
  }
  CUtensorMap map;
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(sizes.size()), const_cast<void*>(data), size,
             bytes, wanted, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw WorkError("a tensor map was refused: innermost axis of " + std::to_string(sizes.front()) + " elements");
  return map;
}

}  // namespace fairway::cuda
