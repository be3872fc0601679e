// z_h = s_h·(y_h − (y_h·u)u), u = v/‖v‖ of the token's own value, s_h = σ(½·logit_h). A warp takes one kv head of one row and
// all its query heads; an absent v reads as zero, an absent logit leaves heads open. The published shape goes through
// head_rows.cuh.
#include "ops/cuda/head_output.h"

#include "ops/cuda/cuda.h"
#include "ops/cuda/head_rows.cuh"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

constexpr float kNormFloor = OutputRows::kNormFloor, kGateScale = OutputRows::kGateScale;

struct Groups {
  int64_t items, heads, kv_heads, size;  // items = rows·K
  int64_t v_pitch, dv_pitch;             // between rows; y and z are dense
  Source<float> logit;
  __device__ int64_t group() const { return heads / kv_heads; }
  __device__ int64_t value(int64_t item, int64_t pitch) const { return item / kv_heads * pitch + item % kv_heads * size; }
  __device__ float open(int64_t head) const { return logit ? sigmoid(kGateScale * logit[head]) : 1.0f; }
};

template <class A, class B>
__device__ float dot(A a, int64_t at, B b, int64_t bt, int64_t size) {
  float total = 0;
  for (int64_t e = lane_id(); e < size; e += 32) total += a[at + e] * b[bt + e];
  return warp_sum(total);
}

template <class T>
__global__ void output_forward(Groups n, Source<T> y, Source<T> v, Sink<T> z, Sink<float> saved_dot) {
  for (int64_t item = warp_index(); item < n.items; item += int64_t{gridDim.x} * kWarps) {
    const int64_t value = n.value(item, n.v_pitch);
    const float inverse = 1.0f / fmaxf(sqrtf(dot(v, value, v, value, n.size)), kNormFloor);
    for (int64_t i = item * n.group(); i < (item + 1) * n.group(); ++i) {
      const float c = dot(y, i * n.size, v, value, n.size) * inverse, s = n.open(i);
      if (lane_id() == 0) saved_dot.put(i, c);
      for (int64_t e = lane_id(); e < n.size; e += 32)
        z.put(i * n.size + e, s * (y[i * n.size + e] - c * v[value + e] * inverse));
    }
  }
}

// With q = g·u: dy = s(g − q·u), dv = −(1/‖v‖)·Σ_h [q·z + c·s(g − q·u)]; where the norm is at its floor it is a constant.
// dlogit = ½(1−s)(g·z).
template <class T>
__global__ void output_backward(Groups n, Source<T> v, Source<T> z, Source<float> saved_dot, Source<T> g, Sink<T> dy,
                                Sink<T> dv, Sink<float> dlogit) {
  for (int64_t item = warp_index(); item < n.items; item += int64_t{gridDim.x} * kWarps) {
    const int64_t value = n.value(item, n.v_pitch), to = n.value(item, n.dv_pitch);
    const float norm = sqrtf(dot(v, value, v, value, n.size)), inverse = 1.0f / fmaxf(norm, kNormFloor);
    const float back = norm <= kNormFloor ? 1.0f : -1.0f;
    for (int64_t begin = 0; begin < n.size; begin += 32) {  // every lane takes every turn, for the sums
      const int64_t e = begin + lane_id();
      float total = 0;
      for (int64_t i = item * n.group(); i < (item + 1) * n.group(); ++i) {
        const float q = dot(g, i * n.size, v, value, n.size) * inverse, s = n.open(i);
        const float along = begin == 0 ? dot(g, i * n.size, z, i * n.size, n.size) : 0.0f;
        if (begin == 0 && lane_id() == 0) dlogit.put(i, kGateScale * (1 - s) * along);
        if (e >= n.size) continue;
        const float on_value = s * q * v[value + e] * inverse, own = s * g[i * n.size + e];
        total += q * z[i * n.size + e] + saved_dot[i] * (own + back * on_value);
        dy.put(i * n.size + e, own - on_value);
      }
      if (e < n.size) dv.put(to + e, -inverse * total);
    }
  }
}

// y = z/s + c·u.
template <class T>
__global__ void output_inverse(Groups n, Source<T> v, Source<T> z, Source<float> saved_dot, T* y) {
  for (int64_t item = warp_index(); item < n.items; item += int64_t{gridDim.x} * kWarps) {
    const int64_t value = n.value(item, n.v_pitch);
    const float inverse = 1.0f / fmaxf(sqrtf(dot(v, value, v, value, n.size)), kNormFloor);
    for (int64_t i = item * n.group(); i < (item + 1) * n.group(); ++i) {
      const float s = n.open(i), unscaled = s > 0 ? 1 / s : 0.0f;
      for (int64_t e = lane_id(); e < n.size; e += 32)
        assign(y[i * n.size + e], z[i * n.size + e] * unscaled + saved_dot[i] * v[value + e] * inverse);
    }
  }
}

Groups groups_of(const HeadOutput& op, const HeadOutput::In& in, const Tensor& dv) {
  return {in.y.rows() * op.kv_heads,
          op.heads,
          op.kv_heads,
          in.y.cols() / op.heads,
          in.v ? pitch_of(in.v) : 0,
          dv ? pitch_of(dv) : 0,
          source<float>(in.logit)};
}

// Whether rows go through head_rows.cuh: eight query heads on four of 64 in bf16.
bool by_rows(const HeadOutput& op, const HeadOutput::In& in, bool vectorized) {
  return vectorized && in.y.spec.dtype == DType::bf16 && op.heads == 8 && op.kv_heads == 4 && in.y.cols() == 512 &&
         (!in.v || pitch_of(in.v) % 8 == 0) && in.y.rows() < (int64_t{1} << 28);
}
OutputRows output_rows(const HeadOutput::In& in) {
  const auto count = [](int64_t x) { return static_cast<unsigned>(x); };
  return {pointer<bf16>(in.v), pointer<float>(in.logit), count(in.y.rows()), in.v ? count(pitch_of(in.v)) : 0};
}
unsigned row_warps(const Tensor& rows) { return static_cast<unsigned>((rows.rows() + kWarps - 1) / kWarps); }

}  // namespace

void head_output_forward(Scratch& scratch, const HeadOutput& op, const Forward<HeadOutput>& f) {
  if (by_rows(op, f.in, vectors(f, 512))) {
    const auto run = [&]<bool Exclusive>() {
      output_rows_forward<2, Exclusive><<<row_warps(f.in.y), kThreads, 0, scratch.stream()>>>(
          output_rows(f.in), pointer<bf16>(f.in.y), pointer<bf16>(f.out.z), pointer<float>(f.saved.dot));
    };
    f.in.v ? run.operator()<true>() : run.operator()<false>();
    return check_launch("head_output by rows");
  }
  const Groups n = groups_of(op, f.in, {});
  with_type(f.in.y, false, [&]<class T, int V>() {
    output_forward<T><<<blocks_for(scratch.context(), n.items, kWarps), kThreads, 0, scratch.stream()>>>(
        n, source<T>(f.in.y), source<T>(f.in.v), sink<T>(f.out.z), sink<float>(f.saved.dot));
  });
  check_launch("head_output");
}

bool head_output_rows_backward(Scratch& scratch, const HeadOutput& op, const Backward<HeadOutput>& b,
                               const HeadStatistics& statistics) {
  if (!b.dout.z || (b.din.v && pitch_of(b.din.v) % 8 != 0) || !by_rows(op, b.in, vectors(b, 512))) return false;
  const OutputRowGradients d{pointer<bf16>(b.out.z),
                             pointer<bf16>(b.dout.z),
                             pointer<float>(b.saved.dot),
                             sink<bf16>(b.din.y),
                             sink<bf16>(b.din.v),
                             sink<float>(b.din.logit),
                             b.din.v ? static_cast<unsigned>(pitch_of(b.din.v)) : 0,
                             statistics};
  const auto run = [&]<bool Exclusive>() {
    output_rows_backward<2, Exclusive><<<row_warps(b.in.y), kThreads, 0, scratch.stream()>>>(output_rows(b.in), d);
  };
  b.in.v ? run.operator()<true>() : run.operator()<false>();
  check_launch("head_output' by rows");
  return true;
}

void head_output_backward(Scratch& scratch, const HeadOutput& op, const Backward<HeadOutput>& b) {
  if (head_output_rows_backward(scratch, op, b, {nullptr, nullptr, Divisor(1), Divisor(1), nullptr, 0})) return;
  const Groups n = groups_of(op, b.in, b.din.v);
  with_type(b.in.y, false, [&]<class T, int V>() {
    output_backward<T><<<blocks_for(scratch.context(), n.items, kWarps), kThreads, 0, scratch.stream()>>>(
        n, source<T>(b.in.v), source<T>(b.out.z), source<float>(b.saved.dot), source<T>(b.dout.z), sink<T>(b.din.y),
        sink<T>(b.din.v), sink<float>(b.din.logit));
  });
  check_launch("head_output'");
}

Tensor heads_before_output(Scratch& scratch, const HeadOutput& op, const Backward<HeadOutput>& b) {
  const Tensor y = scratch_tensor(scratch, b.out.z.spec.shape, b.out.z.spec.dtype);
  const Groups n = groups_of(op, b.in, {});
  with_type(y, false, [&]<class T, int V>() {
    output_inverse<T><<<blocks_for(scratch.context(), n.items, kWarps), kThreads, 0, scratch.stream()>>>(
        n, source<T>(b.in.v), source<T>(b.out.z), source<float>(b.saved.dot), pointer<T>(y));
  });
  check_launch("heads before head_output");
  return y;
}

void forward(const HeadOutput& op, const Forward<HeadOutput>& f) {
  Scratch scratch(f.queue);
  head_output_forward(scratch, op, f);
}

void backward(const HeadOutput& op, const Backward<HeadOutput>& b) {
  Scratch scratch(b.queue);
  head_output_backward(scratch, op, b);
}

}  // namespace fairway::cuda
