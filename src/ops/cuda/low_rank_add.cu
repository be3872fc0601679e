// Products of all documents at once. Their algorithms are those of any batch (gemm.h), so that a document's bits do not depend
// on how many stand beside it. The gain is folded into B, and its gradient is made from gᵀ·low together with that of B.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/gemm.h"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

template <class T>
__global__ void scale_factors(int64_t count, int64_t rank, int64_t width, const T* b, const float* gain, T* out) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    assign(out[i], gain[i / rank % width] * to_float(b[i]));
}

// One block for each output n: row n of every document's dB from gᵀ·low, and the sum that is dgain_n.
template <class T>
__global__ void factor_gradients(int64_t documents, int64_t rank, int64_t width, const float* products, const T* b,
                                 const float* gain, Sink<float> db, Sink<float> dgain) {
  __shared__ float sums[kWarps];
  const int64_t n = blockIdx.x;
  float total = 0;
  for (int64_t i = threadIdx.x; i < documents * rank; i += blockDim.x) {
    const int64_t at = (i / rank * width + n) * rank + i % rank;
    total += products[at] * to_float(b[at]);
    db.put(at, gain[n] * products[at]);
  }
  total = warp_sum(total);
  if (lane_id() == 0) sums[warp_id()] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kWarps; ++i) total += sums[i];
  dgain.put(n, total);
}

// A tensor as the operand of a product of each document: (rows, columns) matrices one after the other.
struct Operand {
  const Tensor* tensor;
  int64_t rows, pitch;
  int64_t stride() const { return rows * pitch; }
};

class Documents {
 public:
  Documents(Scratch& scratch, const LowRankAdd& op, const LowRankAdd::In& in)
      : scratch_(scratch), scale_(static_cast<float>(op.scale)), count_(in.a.dim(0)), length_(in.x.rows() / count_) {}

  Operand rows(const Tensor& t) const { return {&t, length_, pitch_of(t)}; }
  Operand factor(const Tensor& t) const { return {&t, t.dim(1), t.dim(2)}; }
  float scale() const { return scale_; }

  // d = alpha·op(a)·op(b) + c for each document; without c it replaces d, or adds where d accumulates.
  void multiply(ProductLayout layout, const Operand& a, const Operand& b, const Operand& d, float alpha = 1,
                const Operand* c = nullptr) const {
    const bool adds = c != nullptr || d.tensor->accumulate;
    const Operand& addend = c != nullptr ? *c : d;
    scratch_.context().gemms().run({.layout = layout,
                                    .m = d.rows,
                                    .n = d.tensor->cols(),
                                    .k = layout == ProductLayout::tn ? a.rows : a.tensor->cols(),
                                    .in = a.tensor->spec.dtype,
                                    .out = d.tensor->spec.dtype,
                                    .a = a.tensor->data,
                                    .b = b.tensor->data,
                                    .c = addend.tensor->data,
                                    .d = d.tensor->data,
                                    .alpha = alpha,
                                    .beta = adds ? 1.0f : 0.0f,
                                    .batch = count_,
                                    .stride_a = a.stride(),
                                    .stride_b = b.stride(),
                                    .stride_c = addend.stride(),
                                    .stride_d = d.stride(),
                                    .lda = a.pitch,
                                    .ldb = b.pitch,
                                    .ldc = addend.pitch,
                                    .ldd = d.pitch,
                                    .any_batch = true},
                                   scratch_.stream());
  }

  // diag(gain)·B of every document; B itself where there is no gain.
  Tensor gained(const Tensor& b, const Tensor& gain) const {
    if (!gain) return b;
    const Tensor out = scratch_tensor(scratch_, b.spec.shape, b.spec.dtype);
    with_type(b, false, [&]<class T, int V>() {
      scale_factors<T><<<blocks_for(scratch_.context(), b.numel()), kThreads, 0, scratch_.stream()>>>(
          b.numel(), b.dim(2), b.dim(1), pointer<T>(b), pointer<float>(gain), pointer<T>(out));
    });
    check_launch("scale_factors");
    return out;
  }

 private:
  Scratch& scratch_;
  float scale_;
  int64_t count_, length_;
};

void factor_backward(Scratch& scratch, const Documents& all, const Backward<LowRankAdd>& b) {
  if (!b.in.gain) {
    if (b.din.b) all.multiply(ProductLayout::tn, all.rows(b.dout.y), all.rows(b.saved.low), all.factor(b.din.b));
    return;
  }
  if (!b.din.b && !b.din.gain) return;
  const Tensor products = scratch_tensor(scratch, b.in.b.spec.shape, DType::f32);
  all.multiply(ProductLayout::tn, all.rows(b.dout.y), all.rows(b.saved.low), all.factor(products));
  with_type(b.in.b, false, [&]<class T, int V>() {
    factor_gradients<T><<<static_cast<unsigned>(b.in.b.dim(1)), kThreads, 0, scratch.stream()>>>(
        b.in.b.dim(0), b.in.b.dim(2), b.in.b.dim(1), pointer<float>(products), pointer<T>(b.in.b), pointer<float>(b.in.gain),
        sink<float>(b.din.b), sink<float>(b.din.gain));
  });
  check_launch("factor_gradients");
}

}  // namespace

void forward(const LowRankAdd& op, const Forward<LowRankAdd>& f) {
  Scratch scratch(f.queue);
  const Documents all(scratch, op, f.in);
  const Tensor b = all.gained(f.in.b, f.in.gain);
  const Operand low = all.rows(f.saved.low);
  all.multiply(ProductLayout::nt, all.rows(f.in.x), all.factor(f.in.a), low, all.scale());
  const Operand base = f.in.base ? all.rows(f.in.base) : low;
  all.multiply(ProductLayout::nt, low, all.factor(b), all.rows(f.out.y), 1, f.in.base ? &base : nullptr);
}

void backward(const LowRankAdd& op, const Backward<LowRankAdd>& call) {
  Scratch scratch(call.queue);
  const Documents all(scratch, op, call.in);
  factor_backward(scratch, all, call);
  if (call.din.a || call.din.x) {
    const Tensor b = all.gained(call.in.b, call.in.gain);
    const Tensor dlow = scratch_tensor(scratch, call.saved.low.spec.shape, call.saved.low.spec.dtype);
    all.multiply(ProductLayout::nn, all.rows(call.dout.y), all.factor(b), all.rows(dlow), all.scale());
    if (call.din.a) all.multiply(ProductLayout::tn, all.rows(dlow), all.rows(call.in.x), all.factor(call.din.a));
    if (call.din.x) all.multiply(ProductLayout::nn, all.rows(dlow), all.factor(call.in.a), all.rows(call.din.x));
  }
  pass_through(scratch, call.dout.y, call.din.base);
}

}  // namespace fairway::cuda
