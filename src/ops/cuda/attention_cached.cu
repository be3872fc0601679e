// One new token per row against cached keys and values, which are float: its own are stored first, then a warp takes each head
// and goes over the positions 32 at a time, a lane for each.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

constexpr int kPerLane = 8;  // elements of a head in each lane: heads up to 256

struct Cache {
  int64_t heads, kv_heads, size, length, v_pitch;
  float *keys, *values;
  const int32_t* position;
  __device__ int64_t key(int64_t head, int64_t t, int64_t e) const {
    return head * length * size + (t / kCacheKeys * size + e) * kCacheKeys + t % kCacheKeys;
  }
  __device__ int64_t value(int64_t head, int64_t t, int64_t e) const { return (head * length + t) * size + e; }
};

template <class T>
__global__ void store_new(Cache c, int64_t count, Source<T> k, Source<T> v) {
  const int64_t width = c.kv_heads * c.size, t = *c.position;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    c.keys[c.key(i / c.size, t, i % c.size)] = k[i];
    c.values[c.value(i / c.size, t, i % c.size)] = v[i / width * c.v_pitch + i % width];
  }
}

template <class T>
__global__ void attend(Cache c, int64_t items, float scale, Source<T> q, Sink<T> y) {
  __shared__ float queries[kWarps][32 * kPerLane];
  float* query = queries[warp_id()];
  const int64_t last = *c.position;
  for (int64_t h = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); h < items; h += int64_t{gridDim.x} * kWarps) {
    const int64_t head = h / (c.heads / c.kv_heads);
    __syncwarp();
    for (int64_t e = lane_id(); e < c.size; e += 32) query[e] = q[h * c.size + e];
    __syncwarp();
    float sums[kPerLane] = {}, highest = -INFINITY, total = 0;
    for (int64_t begin = 0; begin <= last; begin += 32) {
      const int64_t t = begin + lane_id();
      float score = 0;
      for (int64_t e = 0; t <= last && e < c.size; ++e) score += query[e] * c.keys[c.key(head, t, e)];
      score = t <= last ? scale * score : -INFINITY;
      float top = fmaxf(highest, score);
      for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
      const float weight = expf(score - top), shrink = expf(highest - top);
      highest = top;
      total = total * shrink + warp_sum(weight);
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) sums[i] *= shrink;
      for (int j = 0; j < 32 && begin + j <= last; ++j) {
        const float w = __shfl_sync(~0u, weight, j);
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
          const int64_t e = lane_id() + 32 * i;
          if (e < c.size) sums[i] += w * c.values[c.value(head, begin + j, e)];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int64_t e = lane_id() + 32 * i;
      if (e < c.size) y.put(h * c.size + e, sums[i] / total);
    }
  }
}

}  // namespace

void forward(const AttentionCached& op, const Forward<AttentionCached>& f) {
  Scratch scratch(f.queue);
  const int64_t size = f.in.q.cols() / op.heads, items = f.in.q.rows() * op.heads;
  require(size <= 32 * kPerLane, AttentionCached::name, "heads on the device have at most 256 elements");
  const Cache c{op.heads,
                op.kv_heads,
                size,
                f.in.values.dim(1),
                pitch_of(f.in.v),
                pointer<float>(f.in.keys),
                pointer<float>(f.in.values),
                pointer<int32_t>(f.in.position)};
  with_type(f.in.q, false, [&]<class T, int V>() {
    const int64_t count = f.in.k.numel();
    store_new<T><<<blocks_for(scratch.context(), count), kThreads, 0, scratch.stream()>>>(c, count, source<T>(f.in.k),
                                                                                          source<T>(f.in.v));
    attend<T><<<blocks_for(scratch.context(), items, kWarps), kThreads, 0, scratch.stream()>>>(
        c, items, static_cast<float>(op.scale), source<T>(f.in.q), sink<T>(f.out.y));
  });
  check_launch("attention_cached");
}

}  // namespace fairway::cuda
