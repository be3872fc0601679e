// q' = gain·R(q/rms(q)) per head, and the same for k without a gain; R rotates pairs (j, j + R/2) of the first R elements.
#include "ops/cuda/cuda.h"
#include "ops/cuda/head_rows.cuh"
#include "ops/cuda/heads.cuh"

namespace fairway::cuda {
namespace {

struct Angles {
  const float* table;  // (T, R): cosines, then sines
  Divisor row_length;
  unsigned rotated;
};

struct HeadRows {
  unsigned items;  // rows·heads
  Divisor heads;
  unsigned size;
  float eps;
  unsigned pitch, gradient_pitch;  // between rows of x and of dx; y and dy are dense
};

// One head of one row, as L lanes see it.
struct Place {
  unsigned row, head;
  __device__ Place(unsigned item, const HeadRows& h) : row(h.heads.quotient(item)), head(item - row * h.heads.value) {}
  __device__ int64_t in(const HeadRows& h, unsigned pitch) const { return int64_t{row} * pitch + head * h.size; }
};

// What rotating elements c … c+V takes besides them: the elements half a rotation away, cosines and sines. The V elements lie
// on one side of the half. Asked for before the sums over a head, so that nothing waits for memory twice.
template <int V>
struct Turn {
  float partner[V], cosine[V], sine[V];
  bool turns;

  template <class T>
  __device__ Turn(Source<T> x, int64_t head, unsigned c, const Angles& a, unsigned row, bool inverse) : turns(c < a.rotated) {
    if (!turns) return;
    const unsigned half = a.rotated / 2, pair = c < half ? c : c - half;
    const Source<float> angles{a.table + (row - a.row_length.quotient(row) * a.row_length.value) * a.rotated + pair};
    x.load(head + (c < half ? c + half : c - half), partner);
    angles.load(0, cosine);
    angles.load(half, sine);
    const float side = (c < half) != inverse ? 1.0f : -1.0f;
#pragma unroll
    for (int k = 0; k < V; ++k) sine[k] *= side;
  }
  __device__ void apply(float (&x)[V]) const {
    if (!turns) return;
#pragma unroll
    for (int k = 0; k < V; ++k) x[k] = x[k] * cosine[k] + partner[k] * sine[k];
  }
};

template <int V>
__device__ float sum_squares(const float (&v)[V]) {
  float total = 0;
#pragma unroll
  for (int k = 0; k < V; ++k) total += v[k] * v[k];
  return total;
}

template <class T, int V, int L>
__global__ void rope_forward(HeadRows h, Angles a, Source<T> x, Source<float> gain, Sink<T> y, Sink<float> rstd) {
  const unsigned lane = threadIdx.x % L;
  for (auto i = static_cast<unsigned>(first_group<L>()); i < h.items; i += static_cast<unsigned>(group_stride<L>())) {
    const Place place(i, h);
    const int64_t head = place.in(h, h.pitch);
    const float factor = gain ? gain[place.head] : 1.0f;
    const auto inverse_of = [&](float squares) {
      return 1.0f / sqrtf(group_sum<L>(squares) / static_cast<float>(h.size) + h.eps);
    };
    const auto finish = [&](float(&v)[V], const Turn<V>& turn, unsigned c, float scale) {
      turn.apply(v);
#pragma unroll
      for (int k = 0; k < V; ++k) v[k] *= scale;
      y.store(int64_t{i} * h.size + c, v);
    };
    float v[V], inverse = 0;
    if constexpr (V > 1) {  // a lane holds its only piece
      const unsigned c = lane * V;
      x.load(head + c, v);
      const Turn<V> turn(x, head, c, a, place.row, false);
      inverse = inverse_of(sum_squares(v));
      finish(v, turn, c, inverse * factor);
    } else {
      float squares = 0;
      for (unsigned c = lane; c < h.size; c += L) squares += x[head + c] * x[head + c];
      inverse = inverse_of(squares);
      for (unsigned c = lane; c < h.size; c += L) {
        x.load(head + c, v);
        finish(v, Turn<V>(x, head, c, a, place.row, false), c, inverse * factor);
      }
    }
    if (lane == 0) rstd.put(i, inverse);
  }
}

// With s = Σ Rᵀg·x̂: dgain += s, dx = r·(gain·Rᵀg − x̂·gain·s/E). One accumulator row per group of lanes.
template <class T, int V, int L>
__global__ void rope_backward(HeadRows h, Angles a, Source<T> x, Source<float> rstd, Source<T> g, Source<float> gain,
                              Sink<T> dx, Partials partials) {
  extern __shared__ float accumulators[];
  const unsigned lane = threadIdx.x % L;
  float* sums = accumulators + threadIdx.x / L * h.heads.value;
  if (partials.data != nullptr)
    for (unsigned c = lane; c < h.heads.value; c += L) sums[c] = 0;
  __syncwarp();
  for (auto i = static_cast<unsigned>(first_group<L>()); i < h.items; i += static_cast<unsigned>(group_stride<L>())) {
    const Place place(i, h);
    const int64_t head = place.in(h, h.pitch), out = int64_t{i} * h.size, to = place.in(h, h.gradient_pitch);
    const float inverse = rstd[i], scale = gain ? gain[place.head] : 1.0f;
    float v[V], d[V], along = 0;
    const auto fetch = [&](unsigned c) {  // v = x, d = Rᵀg
      x.load(head + c, v);
      g.load(out + c, d);
      Turn<V>(g, out, c, a, place.row, true).apply(d);
    };
    for (unsigned c = lane * V; c < h.size; c += L * V) {
      fetch(c);
#pragma unroll
      for (int k = 0; k < V; ++k) along += d[k] * v[k] * inverse;
    }
    along = group_sum<L>(along);
    if (lane == 0 && partials.data != nullptr) sums[place.head] += along;
    along /= static_cast<float>(h.size);
    for (unsigned c = lane * V; c < h.size; c += L * V) {
      if constexpr (V == 1) fetch(c);
#pragma unroll
      for (int k = 0; k < V; ++k) d[k] = inverse * scale * (d[k] - v[k] * inverse * along);
      dx.store(to + c, d);
    }
  }
  if (partials.data != nullptr) leave_partials(accumulators, static_cast<int>(blockDim.x) / L, partials);
}

// The kernels count heads in 32 bits: dividing is most of their arithmetic.
HeadRows rows_of(const QkNormRope& op, const Tensor& x, const Tensor& dx) {
  const int64_t heads = x.cols() / op.head_dim;
  require(x.rows() * heads < (int64_t{1} << 31), QkNormRope::name, "a micro-batch on the device has fewer than 2^31 heads");
  return {static_cast<unsigned>(x.rows() * heads), Divisor(heads),
          static_cast<unsigned>(op.head_dim),      static_cast<float>(op.eps),
          static_cast<unsigned>(pitch_of(x)),      static_cast<unsigned>(dx ? pitch_of(dx) : 0)};
}

bool rope_vectors(const Tensor& rope) { return rope.dim(1) % 16 == 0; }
Angles angles_of(const QkNormRope& op, const Tensor& rope) {
  return {pointer<float>(rope), Divisor(op.row_length), static_cast<unsigned>(rope.dim(1))};
}

// Whether rows of these tensors go through head_rows.cuh: eight query heads and four key heads of 64 in bf16.
bool by_rows(const QkNormRope& op, const QkNormRope::In& in, bool vectorized) {
  const int64_t rotated = in.rope.dim(1);
  return vectorized && op.head_dim == 64 && in.q.spec.dtype == DType::bf16 && in.q.cols() == 512 && in.k.cols() == 256 &&
         in.gain && (rotated == 16 || rotated == 32 || rotated == 64) && pitch_of(in.q) % 8 == 0 && pitch_of(in.k) % 8 == 0;
}

RopeRows rope_rows(const QkNormRope& op, const QkNormRope::In& in, const QkNormRope::Saved& saved) {
  const auto count = [](int64_t x) { return static_cast<unsigned>(x); };
  return {pointer<bf16>(in.q),     pointer<bf16>(in.k),     pointer<float>(saved.rstd_q), pointer<float>(saved.rstd_k),
          pointer<float>(in.gain), pointer<float>(in.rope), count(in.q.rows()),           count(op.row_length),
          count(pitch_of(in.q)),   count(pitch_of(in.k)),   count(in.rope.dim(1)),        static_cast<float>(op.eps)};
}

void backward_by_rows(const QkNormRope& op, const Backward<QkNormRope>& b, Scratch& scratch) {
  constexpr int kPerProcessor = 2;  // blocks: what fits, so that every one has as many rows
  const int blocks = kPerProcessor * scratch.context().processors();
  const RopeRowGradients to{pointer<bf16>(b.din.q), pointer<bf16>(b.din.k), static_cast<unsigned>(pitch_of(b.din.q)),
                            static_cast<unsigned>(pitch_of(b.din.k))};
  const Partials partials{scratch.take<float>(blocks * 8), blocks, 8};
  rope_rows_backward<2, 1><<<blocks, kThreads, 0, scratch.stream()>>>(rope_rows(op, b.in, b.saved), pointer<bf16>(b.dout.q),
                                                                      pointer<bf16>(b.dout.k), to, partials);
  check_launch("qk_norm_rope' by rows");
  add_columns(scratch, partials, {{b.din.gain, 8}});
}

}  // namespace

void forward(const QkNormRope& op, const Forward<QkNormRope>& f) {
  Scratch scratch(f.queue);
  if (by_rows(op, f.in, vectors(f, f.in.k.cols()))) {
    const auto blocks = static_cast<unsigned>((f.in.q.rows() + kWarps - 1) / kWarps);
    rope_rows_forward<2, 1><<<blocks, kThreads, 0, scratch.stream()>>>(rope_rows(op, f.in, f.saved), pointer<bf16>(f.out.q),
                                                                       pointer<bf16>(f.out.k), pointer<float>(f.saved.rstd_q),
                                                                       pointer<float>(f.saved.rstd_k));
    return check_launch("qk_norm_rope by rows");
  }
  const Angles a = angles_of(op, f.in.rope);
  const auto run = [&](const Tensor& x, const Tensor& gain, const Tensor& y, const Tensor& rstd) {
    const HeadRows h = rows_of(op, x, {});
    with_heads(x, vectors(f, x.cols()) && rope_vectors(f.in.rope), op.head_dim, [&]<class T, int V, int L>() {
      rope_forward<T, V, L><<<blocks_for(scratch.context(), h.items, kThreads / L), kThreads, 0, scratch.stream()>>>(
          h, a, source<T>(x), source<float>(gain), sink<T>(y), sink<float>(rstd));
    });
    check_launch("qk_norm_rope");
  };
  run(f.in.q, f.in.gain, f.out.q, f.saved.rstd_q);
  run(f.in.k, {}, f.out.k, f.saved.rstd_k);
}

void backward(const QkNormRope& op, const Backward<QkNormRope>& b) {
  Scratch scratch(b.queue);
  const bool plain = b.din.q && b.din.k && !b.din.q.accumulate && !b.din.k.accumulate && b.dout.q && b.dout.k;
  if (plain && pitch_of(b.din.q) % 8 == 0 && pitch_of(b.din.k) % 8 == 0 && by_rows(op, b.in, vectors(b, b.in.k.cols())))
    return backward_by_rows(op, b, scratch);
  const Angles a = angles_of(op, b.in.rope);
  const auto run = [&](const Tensor& x, const Tensor& gain, const Tensor& rstd, const Tensor& g, const Tensor& dx) {
    const HeadRows h = rows_of(op, x, dx);
    with_heads(x, vectors(b, x.cols()) && rope_vectors(b.in.rope), op.head_dim, [&]<class T, int V, int L>() {
      const int groups = kThreads / L, blocks = blocks_for(scratch.context(), h.items, groups);
      const Partials partials{gain ? scratch.take<float>(blocks * h.heads.value) : nullptr, blocks, h.heads.value};
      rope_backward<T, V, L><<<blocks, kThreads, gain ? groups * h.heads.value * sizeof(float) : 0, scratch.stream()>>>(
          h, a, source<T>(x), source<float>(rstd), source<T>(g), source<float>(gain), sink<T>(dx), partials);
      check_launch("qk_norm_rope'");
      if (gain) add_columns(scratch, partials, {{b.din.gain, h.heads.value}});
    });
  };
  run(b.in.q, b.in.gain, b.saved.rstd_q, b.dout.q, b.din.q);
  run(b.in.k, {}, b.saved.rstd_k, b.dout.k, b.din.k);
}

}  // namespace fairway::cuda
