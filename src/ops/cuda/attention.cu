// Causal attention for every type, head size and packing: a warp takes one query of one head (or, for dk and dv, one key of one
// kv head) and goes over its visible rows 32 at a time, a lane for each; no sum depends on the order of blocks. Plain float
// arithmetic, for float32 runs and odd shapes. bf16 heads go to cuDNN (attention_fused.h) and to our own kernels for Hopper
// (attention_tiles.h), each where it is faster in a whole step: cuDNN forward over whole sequences, ours backward and over
// packed documents. On other devices cuDNN does both directions of whole sequences, and kernels of warps the rest
// (attention_warps.h). HeadOutput ends the forward and begins the backward pass, inside of our own kernels where they suit.
#include "ops/cuda/attention_fused.h"
#include "ops/cuda/attention_tiles.h"
#include "ops/cuda/attention_warps.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/head_output.h"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

constexpr int kPerLane = 8;  // elements of a head in each lane: heads up to 256
constexpr int kMostHead = 32 * kPerLane;

template <class T>
struct Heads {
  int64_t rows, length, heads, kv_heads, size;
  float scale;
  const T *q, *k, *v;
  const int32_t* start;  // of each row's segment, or null
  int64_t v_pitch;       // between rows of v; q, k and y are dense
  __device__ int64_t first(int64_t m) const { return start != nullptr ? start[m] : m - m % length; }
  // Place of a query's log-sum-exp: in float (M, H) as the op has it; in bf16 (B, H, T) as cuDNN has it, with B = 1 for
  // segments, so that any kernel's gradient may follow any kernel.
  __device__ int64_t statistic(int64_t m, int64_t h) const {
    if (sizeof(T) == sizeof(float)) return m * heads + h;
    const int64_t t = start != nullptr ? rows : length;
    return (m / t * heads + h) * t + m % t;
  }
  __device__ int64_t query(int64_t m, int64_t h) const { return (m * heads + h) * size; }
  __device__ int64_t kv(int64_t n, int64_t h) const { return (n * kv_heads + h / (heads / kv_heads)) * size; }
  __device__ int64_t value(int64_t n, int64_t h) const { return n * v_pitch + h / (heads / kv_heads) * size; }
};

template <class T>
__device__ float dot(const float* a, const T* b, int64_t size) {
  float total = 0;
  for (int64_t e = 0; e < size; ++e) total += a[e] * to_float(b[e]);
  return total;
}

template <class T>
__device__ void keep(float* to, const T* from, int64_t size) {
  for (int64_t e = lane_id(); e < size; e += 32) to[e] = to_float(from[e]);
  __syncwarp();
}

// sums[i] += weight of row j · rows[j, lane + 32i], for the 32 rows whose weights the lanes hold.
template <class T>
__device__ void add_rows(float (&sums)[kPerLane], float weight, int count, const T* rows, int64_t stride, int64_t size) {
  for (int j = 0; j < count; ++j) {
    const float w = __shfl_sync(~0u, weight, j);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int64_t e = lane_id() + 32 * i;
      if (e < size) sums[i] += w * to_float(rows[j * stride + e]);
    }
  }
}

template <class T>
__global__ void heads_forward(Heads<T> a, T* y, float* lse) {
  __shared__ float queries[kWarps][kMostHead];
  float* q = queries[warp_id()];
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); item < a.rows * a.heads;
       item += int64_t{gridDim.x} * kWarps) {
    const int64_t m = item / a.heads, h = item % a.heads;
    __syncwarp();
    keep(q, a.q + a.query(m, h), a.size);
    float sums[kPerLane] = {}, highest = -INFINITY, total = 0;
    for (int64_t begin = a.first(m); begin <= m; begin += 32) {
      const int64_t n = begin + lane_id();
      const float score = n <= m ? a.scale * dot(q, a.k + a.kv(n, h), a.size) : -INFINITY;
      float top = fmaxf(highest, score);
      for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
      const float weight = expf(score - top), shrink = expf(highest - top);
      highest = top;
      total = total * shrink + warp_sum(weight);
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) sums[i] *= shrink;
      add_rows(sums, weight, static_cast<int>(min(int64_t{32}, m - begin + 1)), a.v + a.value(begin, h), a.v_pitch, a.size);
    }
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int64_t e = lane_id() + 32 * i;
      if (e < a.size) assign(y[a.query(m, h) + e], sums[i] / total);
    }
    if (lane_id() == 0) lse[a.statistic(m, h)] = highest + logf(total);
  }
}

// dq, and along[m, h] = dy·y = dz·z for the keys' kernel.
template <class T>
__global__ void queries_backward(Heads<T> a, const T* z, const T* dz, const float* lse, const T* g, Sink<T> dq, float* along) {
  __shared__ float kept[kWarps][2 * kMostHead];
  float *q = kept[warp_id()], *grad = q + kMostHead;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); item < a.rows * a.heads;
       item += int64_t{gridDim.x} * kWarps) {
    const int64_t m = item / a.heads, h = item % a.heads, at = a.query(m, h), stride = a.kv_heads * a.size;
    __syncwarp();
    keep(q, a.q + at, a.size);
    keep(grad, g + at, a.size);
    float sums[kPerLane] = {}, mean = 0;
    for (int64_t e = lane_id(); e < a.size; e += 32) mean += to_float(dz[at + e]) * to_float(z[at + e]);
    mean = warp_sum(mean);
    if (lane_id() == 0) along[item] = mean;
    const float log_total = lse[a.statistic(m, h)];
    for (int64_t begin = a.first(m); begin <= m; begin += 32) {
      const int64_t n = begin + lane_id(), key = a.kv(n, h);
      const float p = n <= m ? expf(a.scale * dot(q, a.k + key, a.size) - log_total) : 0.0f;
      const float ds = n <= m ? p * (dot(grad, a.v + a.value(n, h), a.size) - mean) * a.scale : 0.0f;
      add_rows(sums, ds, static_cast<int>(min(int64_t{32}, m - begin + 1)), a.k + a.kv(begin, h), stride, a.size);
    }
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int64_t e = lane_id() + 32 * i;
      if (e < a.size) dq.put(at + e, sums[i]);
    }
  }
}

template <class T>
__global__ void keys_backward(Heads<T> a, const float* lse, const T* g, const float* along, Sink<T> dk, Sink<T> dv,
                              int64_t dv_pitch) {
  __shared__ float kept[kWarps][2 * kMostHead];
  float *k = kept[warp_id()], *v = k + kMostHead;
  const int64_t group = a.heads / a.kv_heads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); item < a.rows * a.kv_heads;
       item += int64_t{gridDim.x} * kWarps) {
    const int64_t n = item / a.kv_heads, at = item * a.size, stride = a.heads * a.size;
    const int64_t end = a.start != nullptr ? a.rows : n - n % a.length + a.length;
    __syncwarp();
    keep(k, a.k + at, a.size);
    keep(v, a.v + a.value(n, item % a.kv_heads * group), a.size);
    float dks[kPerLane] = {}, dvs[kPerLane] = {};
    for (int64_t h = item % a.kv_heads * group, last = h + group; h < last; ++h) {
      for (int64_t begin = n; begin < end && (a.start == nullptr || a.start[begin] <= n); begin += 32) {
        const int64_t m = begin + lane_id();
        const bool sees = m < end && (a.start == nullptr || a.start[m] <= n);
        float p = 0, ds = 0;
        if (sees) {
          p = expf(a.scale * dot(k, a.q + a.query(m, h), a.size) - lse[a.statistic(m, h)]);
          ds = p * (dot(v, g + a.query(m, h), a.size) - along[m * a.heads + h]) * a.scale;
        }
        const int count = __popc(__ballot_sync(~0u, sees));
        add_rows(dks, ds, count, a.q + a.query(begin, h), stride, a.size);
        add_rows(dvs, p, count, g + a.query(begin, h), stride, a.size);
      }
    }
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int64_t e = lane_id() + 32 * i;
      if (e >= a.size) continue;
      dk.put(at + e, dks[i]);
      dv.put(n * dv_pitch + item % a.kv_heads * a.size + e, dvs[i]);
    }
  }
}

template <class T>
Heads<T> heads_of(const Attention& op, const Attention::In& in) {
  const int64_t size = in.q.cols() / op.heads;
  require(size <= kMostHead, Attention::name, "heads on the device have at most 256 elements");
  return {in.q.rows(),
          op.row_length,
          op.heads,
          op.kv_heads,
          size,
          static_cast<float>(op.scale),
          pointer<T>(in.q),
          pointer<T>(in.k),
          pointer<T>(in.v),
          pointer<int32_t>(in.segment_start),
          pitch_of(in.v)};
}

void attend(Scratch& scratch, const Attention& op, const Forward<Attention>& f) {
  with_type(f.in.q, false, [&]<class T, int V>() {
    const Heads<T> a = heads_of<T>(op, f.in);
    heads_forward<T><<<blocks_for(scratch.context(), a.rows * a.heads, kWarps), kThreads, 0, scratch.stream()>>>(
        a, pointer<T>(f.out.z), pointer<float>(f.saved.lse));
  });
  check_launch("attention");
}

// The call's dout.z is dy here; dz is the result's.
void attend_back(Scratch& scratch, const Attention& op, const Backward<Attention>& b, const Tensor& dz) {
  with_type(b.in.q, false, [&]<class T, int V>() {
    const Heads<T> a = heads_of<T>(op, b.in);
    auto* along = scratch.take<float>(a.rows * a.heads);
    const auto* lse = pointer<float>(b.saved.lse);
    const auto* g = pointer<T>(b.dout.z);
    queries_backward<T><<<blocks_for(scratch.context(), a.rows * a.heads, kWarps), kThreads, 0, scratch.stream()>>>(
        a, pointer<T>(b.out.z), pointer<T>(dz), lse, g, sink<T>(b.din.q), along);
    keys_backward<T><<<blocks_for(scratch.context(), a.rows * a.kv_heads, kWarps), kThreads, 0, scratch.stream()>>>(
        a, lse, g, along, sink<T>(b.din.k), sink<T>(b.din.v), b.din.v ? pitch_of(b.din.v) : 0);
  });
  check_launch("attention'");
}

}  // namespace

void forward(const Attention& op, const Forward<Attention>& f) {
  Scratch scratch(f.queue);
  FusedHeads& fused = scratch.context().fused_heads();
  if (!fused.suits(scratch, op, f.in) || !fused.forward(scratch, op, f)) {
    if (suits_attention_tiles(scratch.context(), op, f.in)) return attention_tiles_forward(scratch, op, f);
    if (suits_attention_warps(scratch.context(), op, f.in)) return attention_warps_forward(scratch, op, f);
    attend(scratch, op, f);
  }
  if (op.shapes_output(f.in)) head_output_forward(scratch, op.output(), op.output_of(f));
}

void backward(const Attention& op, const Backward<Attention>& b) {
  Scratch scratch(b.queue);
  const bool shapes = op.shapes_output(b.in);
  const Tensor dy = shapes ? scratch_tensor(scratch, b.out.z.spec.shape, b.out.z.spec.dtype) : b.dout.z;
  const Backward<HeadOutput> output = op.output_of(b, dy);
  if (suits_attention_tiles(scratch.context(), op, b.in)) return attention_tiles_backward(scratch, op, b, output);
  if (shapes) head_output_backward(scratch, op.output(), output);
  const Backward<Attention> inner = shapes ? op.before_output(b, dy) : b;
  FusedHeads& fused = scratch.context().fused_heads();
  if (fused.suits(scratch, op, b.in)) {
    Backward<Attention> whole = inner;
    if (shapes) whole.out.z = heads_before_output(scratch, op.output(), output);
    if (fused.backward(scratch, op, whole)) return;
  }
  if (suits_attention_warps(scratch.context(), op, b.in))
    return attention_warps_backward(scratch, op, inner, {b.out.z, b.dout.z});
  attend_back(scratch, op, inner, b.dout.z);
}

}  // namespace fairway::cuda
