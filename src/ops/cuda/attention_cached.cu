// One new token per row against cached keys and values, which are float. A block takes a run of positions of one kv head and up
// to four of its query heads: scores with a position in each thread, then values with a channel in each. A second kernel
// joins the runs in order, so bits do not depend on which block ends first. The grid covers the whole cache, since the position
// is data; runs behind it end at once.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

constexpr int kRun = 128;      // positions, and threads, of a block
constexpr int kLargest = 256;  // elements of a head

struct Cache {
  int64_t heads, kv_heads, size, length, runs, v_pitch;
  float scale;
  float *keys, *values;
  const int32_t* position;
  float* partial;  // (B·H, runs, size + 2): sums, then the highest score and the total weight

  __device__ float* part(int64_t query_head, int64_t run) const { return partial + (query_head * runs + run) * (size + 2); }
};

template <class T>
__device__ void store_new(const Cache& c, int64_t head, int64_t t, Source<T> k, Source<T> v) {
  const int64_t row = head / c.kv_heads, column = head % c.kv_heads * c.size;
  float *keys = c.keys + head * c.length * c.size, *values = c.values + (head * c.length + t) * c.size;
  for (int64_t e = threadIdx.x; e < c.size; e += kRun) {
    keys[(t / kCacheKeys * c.size + e) * kCacheKeys + t % kCacheKeys] = k[head * c.size + e];
    values[e] = v[row * c.v_pitch + column + e];
  }
}

__device__ inline float block_max(float x) {
  __shared__ float parts[kRun / 32];
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  __syncthreads();
  if (lane_id() == 0) parts[warp_id()] = x;
  __syncthreads();
  x = parts[0];
  for (int i = 1; i < kRun / 32; ++i) x = fmaxf(x, parts[i]);
  return x;
}
__device__ inline float block_sum(float x) {
  __shared__ float parts[kRun / 32];
  x = warp_sum(x);
  __syncthreads();
  if (lane_id() == 0) parts[warp_id()] = x;
  __syncthreads();
  x = parts[0];
  for (int i = 1; i < kRun / 32; ++i) x += parts[i];
  return x;
}

template <int G>
__device__ void score(const Cache& c, const float* key, const float (*queries)[kLargest], float (&scores)[G]) {
#pragma unroll 8
  for (int64_t e = 0; e < c.size; ++e) {
    const float x = key[e * kCacheKeys];
#pragma unroll
    for (int g = 0; g < G; ++g) scores[g] += queries[g][e] * x;
  }
}

// Grid: (B·H/G, runs). Thread t scores position begin + t; then threads stand for channels, in as many parts of the run
// as there are threads for, which are added in order.
template <class T, int G>
__global__ void __launch_bounds__(kRun) attend_run(Cache c, Source<T> q, Source<T> k, Source<T> v) {
  __shared__ float queries[G][kLargest], weights[G][kRun], sums[G][kRun];
  const int64_t last = *c.position, begin = int64_t{blockIdx.y} * kRun, query_head = int64_t{blockIdx.x} * G;
  if (begin > last) return;
  const int64_t head = query_head / (c.heads / c.kv_heads), count = min(int64_t{kRun}, last + 1 - begin);
  if (last < begin + kRun) store_new(c, head, last, k, v);
  for (int64_t i = threadIdx.x; i < G * c.size; i += kRun) queries[i / c.size][i % c.size] = q[query_head * c.size + i];
  __syncthreads();
  const int64_t t = begin + threadIdx.x;
  const bool inside = threadIdx.x < count;
  float scores[G] = {};
  if (inside)
    score<G>(c, c.keys + head * c.length * c.size + t / kCacheKeys * c.size * kCacheKeys + t % kCacheKeys, queries, scores);
#pragma unroll
  for (int g = 0; g < G; ++g) {
    const float mine = inside ? c.scale * scores[g] : -INFINITY, highest = block_max(mine);
    const float weight = inside ? expf(mine - highest) : 0.0f, total = block_sum(weight);
    weights[g][threadIdx.x] = weight;
    float* end = c.part(query_head + g, blockIdx.y) + c.size;
    if (threadIdx.x == 0) end[0] = highest, end[1] = total;
  }
  __syncthreads();
  const int columns = static_cast<int>(min(c.size, int64_t{kRun})), parts = kRun / columns;
  const int part = static_cast<int>(threadIdx.x) / columns;
  for (int64_t base = 0; base < c.size; base += columns) {
    const int64_t e = base + threadIdx.x % columns;
    float total[G] = {};
    if (part < parts && e < c.size) {
      const float* value = c.values + (head * c.length + begin) * c.size + e;
#pragma unroll 8
      for (int64_t i = part; i < count; i += parts) {
        const float x = value[i * c.size];
#pragma unroll
        for (int g = 0; g < G; ++g) total[g] += weights[g][i] * x;
      }
    }
    __syncthreads();
#pragma unroll
    for (int g = 0; g < G; ++g) sums[g][threadIdx.x] = total[g];
    __syncthreads();
    if (part != 0 || e >= c.size) continue;
#pragma unroll
    for (int g = 0; g < G; ++g) {
      float all = 0;
      for (int p = 0; p < parts; ++p) all += sums[g][p * columns + threadIdx.x];
      c.part(query_head + g, blockIdx.y)[e] = all;
    }
  }
}

// A warp joins the runs of a query head.
template <class T>
__global__ void join_runs(Cache c, int64_t items, Sink<T> y) {
  const int64_t h = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id();
  if (h >= items) return;
  const int64_t runs = *c.position / kRun + 1;
  float highest = -INFINITY, total = 0;
  for (int64_t r = 0; r < runs; ++r) highest = fmaxf(highest, c.part(h, r)[c.size]);
  for (int64_t r = 0; r < runs; ++r) total += c.part(h, r)[c.size + 1] * expf(c.part(h, r)[c.size] - highest);
  for (int64_t e = lane_id(); e < c.size; e += 32) {
    float sum = 0;
    for (int64_t r = 0; r < runs; ++r) sum += c.part(h, r)[e] * expf(c.part(h, r)[c.size] - highest);
    y.put(h * c.size + e, sum / total);
  }
}

}  // namespace

void forward(const AttentionCached& op, const Forward<AttentionCached>& f) {
  Scratch scratch(f.queue);
  const int64_t size = f.in.q.cols() / op.heads, items = f.in.q.rows() * op.heads, length = f.in.values.dim(1);
  const int64_t runs = (length + kRun - 1) / kRun, group = op.heads / op.kv_heads;
  require(size <= kLargest, AttentionCached::name, "heads on the device have at most 256 elements");
  const Cache c{op.heads,
                op.kv_heads,
                size,
                length,
                runs,
                pitch_of(f.in.v),
                static_cast<float>(op.scale),
                pointer<float>(f.in.keys),
                pointer<float>(f.in.values),
                pointer<int32_t>(f.in.position),
                scratch.take<float>(items * runs * (size + 2))};
  with_type(f.in.q, false, [&]<class T, int V>() {
    const auto attend = [&]<int G>() {
      const dim3 grid(static_cast<unsigned>(items / G), static_cast<unsigned>(runs));
      attend_run<T, G><<<grid, kRun, 0, scratch.stream()>>>(c, source<T>(f.in.q), source<T>(f.in.k), source<T>(f.in.v));
    };
    if (group % 4 == 0)
      attend.template operator()<4>();
    else if (group % 2 == 0)
      attend.template operator()<2>();
    else
      attend.template operator()<1>();
    check_launch("attention_cached");
    join_runs<T>
        <<<static_cast<unsigned>((items + kWarps - 1) / kWarps), kThreads, 0, scratch.stream()>>>(c, items, sink<T>(f.out.y));
  });
  check_launch("attention_cached, joining");
}

}  // namespace fairway::cuda
