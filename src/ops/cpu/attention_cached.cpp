// AttentionCached: rows and kv heads are shared out; each belongs to one task, so the bits do not depend on the team.
#include "ops/cpu/cached_heads.h"

#include "base/error.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void attend_cached(const AttentionCached& op, const Forward<AttentionCached>& call, int64_t head) {
  const int64_t size = call.in.q.cols() / op.heads, length = call.in.values.dim(1), group = op.heads / op.kv_heads;
  const int64_t position = *call.in.position.as<int32_t>();
  FAIRWAY_ASSERT(position >= 0 && position < length, "a position outside of the cache");
  const float *k = call.in.k.as<float>() + head * size, *v = call.in.v.as<float>() + head * size;
  float* keys = call.in.keys.as<float>() + head * length * size;
  float* values = call.in.values.as<float>() + head * length * size;
  for (int64_t e = 0; e < size; ++e) keys[cached_key(position, e, size)] = k[e];
  kernels().rows.copy(v, values + position * size, size);
  kernels().attention.cached({.head_size = size,
                              .group = group,
                              .count = position + 1,
                              .scale = static_cast<float>(op.scale),
                              .q = call.in.q.as<float>() + head * group * size,
                              .keys = keys,
                              .values = values,
                              .scores = reinterpret_cast<float*>(call.workspace.data) + head * group * length,
                              .y = call.out.y.as<float>() + head * group * size});
}

void forward(const AttentionCached& op, const Forward<AttentionCached>& call) {
  const int64_t rows = call.in.q.rows(), position = *call.in.position.as<int32_t>();
  for_tasks(*call.queue, rows * op.kv_heads, rows * (position + 1) * call.in.k.cols(),
            [&](int64_t head) { attend_cached(op, call, head); });
}

}  // namespace fairway::cpu
