// Where q, k and v lie side by side the three products are one (ops/cuda/lowering.cpp).
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/gemm.h"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

// A gradient to which nothing is added.
void clear(Scratch& scratch, const Tensor& gradient) {
  if (gradient && !gradient.accumulate)
    check(cudaMemsetAsync(gradient.data, 0, gradient.spec.bytes(), scratch.stream()), "cudaMemsetAsync");
}

// Three arrays as one, the parts of a joint one: a launch instead of three.
template <class T>
struct Parts {
  T* data[3];
  unsigned begin[4];  // of each in the joint array, and its end
  bool add[3];

  // `count(weight)` elements of T for each.
  template <class Count>
  Parts(const Tensor (&of)[3], const Tensor (&weights)[3], Count&& count) {
    begin[0] = 0;
    for (int i = 0; i < 3; ++i) {
      data[i] = reinterpret_cast<T*>(of[i].data);
      begin[i + 1] = begin[i] + static_cast<unsigned>(count(weights[i]));
      add[i] = of[i].accumulate;
    }
  }
  __device__ int part(unsigned i) const { return i < begin[1] ? 0 : i < begin[2] ? 1 : 2; }
};

template <class Word>
__global__ void join(Parts<Word> from, Word* to) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < from.begin[3]; i += gridDim.x * blockDim.x) {
    const int part = from.part(i);
    to[i] = from.data[part][i - from.begin[part]];
  }
}

__global__ void split(const float* from, Parts<float> to) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < to.begin[3]; i += gridDim.x * blockDim.x) {
    const int part = to.part(i);
    if (to.data[part] == nullptr) continue;
    float& place = to.data[part][i - to.begin[part]];
    place = to.add[part] ? place + from[i] : from[i];
  }
}

// [Wq; Wk; Wv] in scratch: the three products as one.
Tensor joint_weight(Scratch& scratch, const QkvProject::In& in) {
  const Tensor weights[3] = {in.weight_q, in.weight_k, in.weight_v};
  const int64_t rows = weights[0].dim(0) + weights[1].dim(0) + weights[2].dim(0);
  const Tensor out = scratch_tensor(scratch, {rows, in.x.cols()}, in.weight_q.spec.dtype);
  const auto run = [&]<class Word>(Word* to) {
    join<<<blocks_for(scratch.context(), static_cast<int64_t>(out.spec.bytes() / sizeof(Word))), kThreads, 0,
           scratch.stream()>>>(Parts<Word>(weights, weights, [](const Tensor& w) { return w.spec.bytes() / sizeof(Word); }),
                               to);
  };
  bool aligned = true;
  for (const Tensor& w : weights)
    aligned &= reinterpret_cast<uintptr_t>(w.data) % sizeof(uint4) == 0 && w.spec.bytes() % sizeof(uint4) == 0;
  aligned ? run(reinterpret_cast<uint4*>(out.data)) : run(reinterpret_cast<uint16_t*>(out.data));
  check_launch("join");
  return out;
}

// The three tensors that lie side by side from `first` on, as one.
Tensor joint_rows(const Tensor& first) {
  Tensor out = first;
  out.spec.shape = {first.rows(), first.pitch};
  out.pitch = 0;
  return out;
}

void joint_backward(Scratch& scratch, const Backward<QkvProject>& b) {
  const Tensor g = joint_rows(b.dout.q), weight = joint_weight(scratch, b.in);
  multiply(scratch, ProductLayout::nn, g, weight, b.din.x);
  const Tensor weights[3] = {b.in.weight_q, b.in.weight_k, b.in.weight_v};
  const Tensor dweights[3] = {b.din.weight_q, b.din.weight_k, b.din.weight_v};
  if (!dweights[0] && !dweights[1] && !dweights[2]) return;
  const Tensor joint = scratch_tensor(scratch, weight.spec.shape, DType::f32);
  multiply(scratch, ProductLayout::tn, g, b.in.x, joint);
  split<<<blocks_for(scratch.context(), joint.numel()), kThreads, 0, scratch.stream()>>>(
      pointer<float>(joint), Parts<float>(dweights, weights, [](const Tensor& w) { return w.numel(); }));
  check_launch("split");
}

}  // namespace

void forward(const QkvProject&, const Forward<QkvProject>& f) {
  Scratch scratch(f.queue);
  if (f.out.q.pitch > 0) return multiply(scratch, ProductLayout::nt, f.in.x, joint_weight(scratch, f.in), joint_rows(f.out.q));
  multiply(scratch, ProductLayout::nt, f.in.x, f.in.weight_q, f.out.q);
  multiply(scratch, ProductLayout::nt, f.in.x, f.in.weight_k, f.out.k);
  multiply(scratch, ProductLayout::nt, f.in.x, f.in.weight_v, f.out.v);
}

void backward(const QkvProject&, const Backward<QkvProject>& b) {
  Scratch scratch(b.queue);
  if (b.dout.q && b.dout.q.pitch > 0) return joint_backward(scratch, b);
  Tensor dx = b.din.x;
  if (dx && !b.dout.q && !b.dout.k && !b.dout.v) clear(scratch, dx);
  const auto share = [&](const Tensor& g, const Tensor& weight, const Tensor& dweight) {
    if (!g) return clear(scratch, dweight);
    multiply(scratch, ProductLayout::tn, g, b.in.x, dweight);
    multiply(scratch, ProductLayout::nn, g, weight, dx);
    dx.accumulate = true;
  };
  share(b.dout.q, b.in.weight_q, b.din.weight_q);
  share(b.dout.k, b.in.weight_k, b.din.weight_k);
  share(b.dout.v, b.in.weight_v, b.din.weight_v);
}

}  // namespace fairway::cuda
