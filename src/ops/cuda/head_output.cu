// z_h = s_h·(y_h − (y_h·u)u), u = v/‖v‖ of the token's own value, s_h = σ(½·gate_h·a[0:W]). A warp takes one kv head of one row
// and all its query heads; an absent v or gate reads as zero. The published shape goes through head_rows.cuh.
#include "ops/cuda/cuda.h"
#include "ops/cuda/head_rows.cuh"

namespace fairway::cuda {
namespace {

constexpr float kNormFloor = OutputRows::kNormFloor, kGateScale = OutputRows::kGateScale;

struct Groups {
  int64_t items, heads, kv_heads, size;  // items = rows·K
  int64_t v_pitch, dv_pitch;             // between rows; y and z are dense
  int64_t width, gated;                  // of a, W
  __device__ int64_t group() const { return heads / kv_heads; }
  __device__ int64_t value(int64_t item, int64_t pitch) const { return item / kv_heads * pitch + item % kv_heads * size; }
};

template <class A, class B>
__device__ float dot(A a, int64_t at, B b, int64_t bt, int64_t size) {
  float total = 0;
  for (int64_t e = lane_id(); e < size; e += 32) total += a[at + e] * b[bt + e];
  return warp_sum(total);
}

template <class T>
__global__ void output_forward(Groups n, Source<T> y, Source<T> v, Source<T> a, Source<float> gate, Sink<T> z,
                               Sink<float> saved_dot, Sink<float> saved_open) {
  for (int64_t item = warp_index(); item < n.items; item += int64_t{gridDim.x} * kWarps) {
    const int64_t value = n.value(item, n.v_pitch), row = item / n.kv_heads;
    const float inverse = 1.0f / fmaxf(sqrtf(dot(v, value, v, value, n.size)), kNormFloor);
    for (int64_t i = item * n.group(); i < (item + 1) * n.group(); ++i) {
      const float c = dot(y, i * n.size, v, value, n.size) * inverse;
      const float s = gate ? sigmoid(kGateScale * dot(gate, i % n.heads * n.gated, a, row * n.width, n.gated)) : 1.0f;
      if (lane_id() == 0) saved_dot.put(i, c), saved_open.put(i, s);
      for (int64_t e = lane_id(); e < n.size; e += 32)
        z.put(i * n.size + e, s * (y[i * n.size + e] - c * v[value + e] * inverse));
    }
  }
}

// With q = g·u: dy = s(g − q·u), dv = −(1/‖v‖)·Σ_h [q·z + c·s(g − q·u)]; where the norm is at its floor it is a constant.
template <class T>
__global__ void output_backward(Groups n, Source<T> v, Source<T> z, Source<float> saved_dot, Source<float> open, Source<T> g,
                                Sink<T> dy, Sink<T> dv) {
  for (int64_t item = warp_index(); item < n.items; item += int64_t{gridDim.x} * kWarps) {
    const int64_t value = n.value(item, n.v_pitch), to = n.value(item, n.dv_pitch);
    const float norm = sqrtf(dot(v, value, v, value, n.size)), inverse = 1.0f / fmaxf(norm, kNormFloor);
    const float back = norm <= kNormFloor ? 1.0f : -1.0f;
    for (int64_t begin = 0; begin < n.size; begin += 32) {  // every lane takes every turn, for the sums
      const int64_t e = begin + lane_id();
      float total = 0;
      for (int64_t i = item * n.group(); i < (item + 1) * n.group(); ++i) {
        const float q = dot(g, i * n.size, v, value, n.size) * inverse, s = open[i];
        if (e >= n.size) continue;
        const float along = s * q * v[value + e] * inverse, own = s * g[i * n.size + e];
        total += q * z[i * n.size + e] + saved_dot[i] * (own + back * along);
        dy.put(i * n.size + e, own - along);
      }
      if (e < n.size) dv.put(to + e, -inverse * total);
    }
  }
}

// A warp takes a row. t_h = ½(1−s)(g·z) of each head is kept in shared memory for da = Σ_h t_h·gate_h; dgate_h += t_h·a.
template <class T>
__global__ void gate_backward(Groups n, Source<T> a, Source<float> gate, Source<T> z, Source<float> open, Source<T> g,
                              Sink<T> da, Partials partials) {
  extern __shared__ float accumulators[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  float* sums = accumulators + warp_id() * partials.columns;
  float* logits = accumulators + warps * partials.columns + warp_id() * n.heads;
  for (int64_t c = lane_id(); c < partials.columns; c += 32) sums[c] = 0;
  __syncwarp();
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * warps + warp_id(); m < n.items / n.kv_heads;
       m += int64_t{gridDim.x} * warps) {
    for (int64_t h = 0; h < n.heads; ++h) {
      const int64_t i = m * n.heads + h;
      const float t = kGateScale * (1 - open[i]) * dot(g, i * n.size, z, i * n.size, n.size);
      if (lane_id() == 0) logits[h] = t;
      for (int64_t c = lane_id(); c < n.gated; c += 32) sums[h * n.gated + c] += t * a[m * n.width + c];
    }
    __syncwarp();
    for (int64_t c = lane_id(); c < n.width; c += 32) {
      float total = 0;
      for (int64_t h = 0; c < n.gated && h < n.heads; ++h) total += logits[h] * gate[h * n.gated + c];
      da.put(m * n.width + c, total);
    }
    __syncwarp();
  }
  leave_partials(accumulators, warps, partials);
}

Groups groups_of(const HeadOutput& op, const HeadOutput::In& in, const Tensor& dv) {
  return {in.y.rows() * op.kv_heads,
          op.heads,
          op.kv_heads,
          in.y.cols() / op.heads,
          in.v ? pitch_of(in.v) : 0,
          dv ? pitch_of(dv) : 0,
          in.gate ? in.a.cols() : 0,
          in.gate ? in.gate.cols() : 0};
}

// Whether rows go through head_rows.cuh: eight query heads on four of 64 in bf16.
bool by_rows(const HeadOutput& op, const HeadOutput::In& in, bool vectorized) {
  const bool gate_fits = !in.gate || (in.gate.cols() <= OutputRows::kMostGated && in.a.cols() % 256 == 0);
  return vectorized && gate_fits && in.y.spec.dtype == DType::bf16 && op.heads == 8 && op.kv_heads == 4 && in.y.cols() == 512 &&
         (!in.v || pitch_of(in.v) % 8 == 0) && in.y.rows() < (int64_t{1} << 28);
}
OutputRows output_rows(const HeadOutput::In& in) {
  const auto count = [](int64_t x) { return static_cast<unsigned>(x); };
  return {pointer<bf16>(in.v),
          pointer<bf16>(in.a),
          pointer<float>(in.gate),
          count(in.y.rows()),
          in.v ? count(pitch_of(in.v)) : 0,
          in.gate ? count(in.a.cols()) : 0,
          in.gate ? count(in.gate.cols()) : 0};
}

// body.operator()<Exclusive, Gated>().
template <class Body>
void with_steps(const HeadOutput::In& in, Body&& body) {
  if (in.v && in.gate)
    body.template operator()<true, true>();
  else if (in.v)
    body.template operator()<true, false>();
  else
    body.template operator()<false, true>();
}

}  // namespace

void forward(const HeadOutput& op, const Forward<HeadOutput>& f) {
  Scratch scratch(f.queue);
  if (by_rows(op, f.in, vectors(f, 512))) {
    const auto blocks = static_cast<unsigned>((f.in.y.rows() + kWarps - 1) / kWarps);
    with_steps(f.in, [&]<bool Exclusive, bool Gated>() {
      output_rows_forward<2, Exclusive, Gated>
          <<<blocks, kThreads, 0, scratch.stream()>>>(output_rows(f.in), pointer<bf16>(f.in.y), pointer<bf16>(f.out.z),
                                                      pointer<float>(f.saved.dot), pointer<float>(f.saved.open));
    });
    return check_launch("head_output by rows");
  }
  const Groups n = groups_of(op, f.in, {});
  with_type(f.in.y, false, [&]<class T, int V>() {
    output_forward<T><<<blocks_for(scratch.context(), n.items, kWarps), kThreads, 0, scratch.stream()>>>(
        n, source<T>(f.in.y), source<T>(f.in.v), source<T>(f.in.a), source<float>(f.in.gate), sink<T>(f.out.z),
        sink<float>(f.saved.dot), sink<float>(f.saved.open));
  });
  check_launch("head_output");
}

namespace {

void backward_by_rows(Scratch& scratch, const Backward<HeadOutput>& b) {
  const OutputRowGradients d{pointer<bf16>(b.out.z),      pointer<bf16>(b.dout.z),
                             pointer<float>(b.saved.dot), pointer<float>(b.saved.open),
                             sink<bf16>(b.din.y),         sink<bf16>(b.din.v),
                             sink<bf16>(b.din.a),         b.din.v ? static_cast<unsigned>(pitch_of(b.din.v)) : 0};
  const int64_t columns = b.in.gate ? b.in.gate.numel() : 0;
  const int blocks =
      b.in.gate ? row_blocks(scratch.context(), b.in.y.rows()) : static_cast<int>((b.in.y.rows() + kWarps - 1) / kWarps);
  const Partials partials{columns > 0 ? scratch.take<float>(blocks * columns) : nullptr, blocks, columns};
  with_steps(b.in, [&]<bool Exclusive, bool Gated>() {
    output_rows_backward<2, Exclusive, Gated><<<blocks, kThreads, 0, scratch.stream()>>>(output_rows(b.in), d, partials);
  });
  check_launch("head_output' by rows");
  if (b.in.gate) add_columns(scratch, partials, {{b.din.gate, columns}});
}

void gate_gradient(Scratch& scratch, const Groups& n, const Backward<HeadOutput>& b) {
  const int64_t columns = n.heads * n.gated;
  const int warps = column_warps(columns + n.heads), blocks = column_blocks(scratch.context(), b.in.y.rows(), warps);
  const Partials partials{scratch.take<float>(blocks * columns), blocks, columns};
  with_type(b.in.y, false, [&]<class T, int V>() {
    gate_backward<T>
        <<<blocks, warps * 32, static_cast<size_t>(warps * (columns + n.heads)) * sizeof(float), scratch.stream()>>>(
            n, source<T>(b.in.a), source<float>(b.in.gate), source<T>(b.out.z), source<float>(b.saved.open),
            source<T>(b.dout.z), sink<T>(b.din.a), partials);
  });
  check_launch("head_output' of the gate");
  add_columns(scratch, partials, {{b.din.gate, columns}});
}

}  // namespace

void backward(const HeadOutput& op, const Backward<HeadOutput>& b) {
  Scratch scratch(b.queue);
  if (b.dout.z && (!b.din.v || pitch_of(b.din.v) % 8 == 0) && by_rows(op, b.in, vectors(b, 512)))
    return backward_by_rows(scratch, b);
  const Groups n = groups_of(op, b.in, b.din.v);
  with_type(b.in.y, false, [&]<class T, int V>() {
    output_backward<T><<<blocks_for(scratch.context(), n.items, kWarps), kThreads, 0, scratch.stream()>>>(
        n, source<T>(b.in.v), source<T>(b.out.z), source<float>(b.saved.dot), source<float>(b.saved.open), source<T>(b.dout.z),
        sink<T>(b.din.y), sink<T>(b.din.v));
  });
  check_launch("head_output'");
  if (b.in.gate) gate_gradient(scratch, n, b);
}

}  // namespace fairway::cuda
