// AttentionCached: rows and kv heads are shared out; each belongs to one task, so the bits do not depend on the team.
#include "base/error.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const AttentionCached& op, const Forward<AttentionCached>& call) {
  const int64_t rows = call.in.q.rows(), size = call.in.q.cols() / op.heads, length = call.in.values.dim(1);
  const int64_t group = op.heads / op.kv_heads, position = *call.in.position.as<int32_t>();
  FAIRWAY_ASSERT(position >= 0 && position < length, "a position outside of the cache");
  const float *q = call.in.q.as<float>(), *k = call.in.k.as<float>(), *v = call.in.v.as<float>();
  float *keys = call.in.keys.as<float>(), *values = call.in.values.as<float>(), *y = call.out.y.as<float>();
  auto* scores = reinterpret_cast<float*>(call.workspace.data);
  const RowKernels& row = kernels().rows;
  const AttentionKernels& attention = kernels().attention;
  for_tasks(*call.queue, rows * op.kv_heads, rows * op.kv_heads * (position + 1) * size, [&](int64_t head) {
    float *own_keys = keys + head * length * size, *own_values = values + head * length * size;
    for (int64_t e = 0; e < size; ++e) own_keys[cached_key(position, e, size)] = k[head * size + e];
    row.copy(v + head * size, own_values + position * size, size);
    attention.cached({.head_size = size,
                      .group = group,
                      .count = position + 1,
                      .scale = static_cast<float>(op.scale),
                      .q = q + head * group * size,
                      .keys = own_keys,
                      .values = own_values,
                      .scores = scores + head * group * length,
                      .y = y + head * group * size});
  });
}

}  // namespace fairway::cpu
