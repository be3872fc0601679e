#include "ops/cuda/library_time.h"

#include "ops/cuda/attention_fused.h"
#include "ops/cuda/gemm.h"

namespace fairway::cuda {
namespace {

constexpr int kWarmUp = 2, kRepeats = 10;

template <class Work>
double seconds_of(Context& context, Work&& work) {
  for (int i = 0; i < kWarmUp; ++i) work();
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  check(cudaEventRecord(begin, context.stream()), "cudaEventRecord");
  for (int i = 0; i < kRepeats; ++i) work();
  check(cudaEventRecord(end, context.stream()), "cudaEventRecord");
  context.wait();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return static_cast<double>(milliseconds) * 1e-3 / kRepeats;
}

// Products whose results nobody wants.
class Products {
 public:
  explicit Products(Context& context) : context_(context) {}

  // y = h·Wᵀ, W (N, K).
  double forward(const Tensor& h, const Tensor& weight) {
    return time({.layout = ProductLayout::nt, .m = h.rows(), .n = weight.rows(), .k = h.cols(), .a = h.data, .b = weight.data},
                h, h);
  }
  // dh = g·W and dW = gᵀ·h.
  double backward(const Tensor& g, const Tensor& h, const Tensor& weight) {
    Tensor sums = weight;
    sums.spec.dtype = DType::f32;
    return time({.layout = ProductLayout::nn, .m = g.rows(), .n = h.cols(), .k = g.cols(), .a = g.data, .b = weight.data}, g,
                h) +
           time({.layout = ProductLayout::tn, .m = g.cols(), .n = h.cols(), .k = g.rows(), .a = g.data, .b = h.data}, g, sums);
  }

 private:
  double time(Product product, const Tensor& in, const Tensor& out) {
    product.in = in.spec.dtype;
    product.out = out.spec.dtype;
    const Buffer result(static_cast<size_t>(product.m * product.n) * size_of(product.out));
    product.d = result.data();
    return seconds_of(context_, [&] { context_.gemms().run(product, context_.stream()); });
  }
  Context& context_;
};

// Three tensors that lie side by side or apart, as operands of one product each way.
double qkv_seconds(Products& products, bool backward, const QkvProject::In& in, const QkvProject::Out& dout) {
  double total = 0;
  const Tensor weights[] = {in.weight_q, in.weight_k, in.weight_v}, gradients[] = {dout.q, dout.k, dout.v};
  const bool joint = !backward || (dout.q && dout.q.pitch > 0);
  if (joint) {
    // cuBLASLt reads as many bytes wherever they lie: rows of the input stand for those of the joint weight.
    Tensor weight = in.x, g = dout.q;
    weight.spec.shape = {weights[0].rows() + weights[1].rows() + weights[2].rows(), in.x.cols()};
    if (weight.spec.bytes() > in.x.spec.bytes()) return 0;
    if (!backward) return products.forward(in.x, weight);
    g.spec.shape = {g.rows(), g.pitch};
    return products.backward(g, in.x, weight);
  }
  for (int i = 0; i < 3; ++i)
    if (gradients[i]) total += products.backward(gradients[i], in.x, weights[i]);
  return total;
}

double attention_seconds(Queue* queue, const Attention& op, bool backward, const CallTensors& t) {
  Scratch scratch(queue);
  FusedHeads& heads = scratch.context().fused_heads();
  const auto in = to_args<Attention::In>(t.in);
  const auto out = to_args<Attention::Out>(t.out);
  const auto saved = to_args<Attention::Saved>(t.saved);
  if (!heads.suits(scratch, op, in)) return 0;
  bool runs = false;
  const double seconds = seconds_of(scratch.context(), [&] {
    if (!backward) {
      runs = heads.forward(scratch, op, {in, out, saved, {}, queue});
    } else {
      auto din = to_args<Attention::In>(t.din);
      din.q.accumulate = din.k.accumulate = din.v.accumulate = false;
      runs = heads.backward(scratch, op, {in, out, saved, to_args<Attention::Out>(t.dout), din, {}, queue});
    }
    scratch.context().release_scratch();
  });
  return runs ? seconds : 0;
}

}  // namespace

double library_seconds(Queue& queue, const AnyOp& any, bool backward, const CallTensors& t) {
  Products products(context_of(queue));
  if (const auto* op = std::get_if<Attention>(&any)) return attention_seconds(&queue, *op, backward, t);
  if (std::holds_alternative<QkvProject>(any))
    return qkv_seconds(products, backward, to_args<QkvProject::In>(t.in), to_args<QkvProject::Out>(t.dout));
  if (std::holds_alternative<ProjectResidual>(any)) {
    const auto in = to_args<ProjectResidual::In>(t.in);
    return backward ? products.backward(to_args<ProjectResidual::Out>(t.dout).y, in.h, in.weight)
                    : products.forward(in.h, in.weight);
  }
  if (std::holds_alternative<Mlp>(any)) {
    const auto in = to_args<Mlp::In>(t.in);
    const Tensor& post = to_args<Mlp::Saved>(t.saved).post;  // has the shape of its gradient too
    return backward ? products.backward(to_args<Mlp::Out>(t.dout).y, post, in.down) + products.backward(post, in.m, in.up)
                    : products.forward(in.m, in.up) + products.forward(post, in.down);
  }
  if (std::holds_alternative<SoftcapCrossEntropy>(any)) {
    const auto in = to_args<SoftcapCrossEntropy::In>(t.in);
    return backward ? products.backward(to_args<SoftcapCrossEntropy::Saved>(t.saved).logits, in.x, in.table)
                    : products.forward(in.x, in.table);
  }
  return 0;
}

}  // namespace fairway::cuda
