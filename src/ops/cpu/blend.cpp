#include "ops/cpu/blend.h"

#include "base/bf16.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {
namespace {

using Bf16 = uint16_t;

// Elements [begin, begin + count) as floats: where they lie, or copied into `room`.
float* as_floats(const Tensor& tensor, int64_t begin, int64_t count, float* room) {
  if (tensor.spec.dtype != DType::bf16) return tensor.as<float>() + begin;
  const Bf16* from = reinterpret_cast<const Bf16*>(tensor.data) + begin;
  for (int64_t i = 0; i < count; ++i) room[i] = from_bf16(from[i]);
  return room;
}

}  // namespace

// bf16 goes through floats a block at a time, so that one kernel, and with it the same bits, serves all types.
void blend(Queue& queue, double keep, double share, const Tensor& target, const Tensor& source, bool round) {
  constexpr int64_t kBlock = 512;
  const bool narrow = target.spec.dtype == DType::bf16, floats = !narrow && source.spec.dtype != DType::bf16;
  for_elements(queue, target.numel(), [&](RowRange range) {
    float to_room[kBlock], from_room[kBlock];
    const int64_t block = floats ? range.end - range.begin : kBlock;
    for (int64_t begin = range.begin; begin < range.end; begin += block) {
      const int64_t count = std::min(block, range.end - begin);
      float* to = as_floats(target, begin, count, to_room);
      const float* from = as_floats(source, begin, count, from_room);
      kernels().update.blend(static_cast<float>(keep), static_cast<float>(share), {0, count}, to, from);
      for (int64_t i = 0; i < count && round; ++i) to[i] = through_bf16(to[i]);
      for (int64_t i = 0; i < count && narrow; ++i) reinterpret_cast<Bf16*>(target.data)[begin + i] = to_bf16(to[i]);
    }
  });
}

}  // namespace fairway::cpu
