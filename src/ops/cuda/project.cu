// Products of the residual stream with the banks. The scale of an output projection is folded into its weights, so that one
// product with C = x does y = x + h·(diag(scale)·W)ᵀ.
#include "ops/cuda/cuda.h"
#include "ops/cuda/project.h"

namespace fairway::cuda {

namespace {

// A gradient to which nothing is added.
void clear(Scratch& scratch, const Tensor& gradient) {
  if (gradient && !gradient.accumulate)
    check(cudaMemsetAsync(gradient.data, 0, gradient.spec.bytes(), scratch.stream()), "cudaMemsetAsync");
}

}  // namespace

Tensor scaled_weight(Scratch& scratch, const Tensor& weight, const Tensor& scale) {
  const Tensor out = scratch_tensor(scratch, weight.spec.shape, weight.spec.dtype);
  scale_rows(scratch, weight, scale, out);
  return out;
}

void project_into(Scratch& scratch, const Tensor& x, const Tensor& h, const Tensor& scaled, const Tensor& y) {
  scratch.context().gemms().run({.layout = Layout::nt,
                                 .m = h.rows(),
                                 .n = scaled.rows(),
                                 .k = h.cols(),
                                 .in = h.spec.dtype,
                                 .out = y.spec.dtype,
                                 .a = h.data,
                                 .b = scaled.data,
                                 .c = x.data,
                                 .d = y.data,
                                 .beta = x ? 1.0f : 0.0f},
                                scratch.stream());
}

void project_gradients(Scratch& scratch, const Tensor& g, const Tensor& h, const Tensor& weight, const Tensor& scale,
                       const Tensor& dweight, const Tensor& dscale) {
  if (!dweight && !dscale) return;
  const Tensor gram = scratch_tensor(scratch, weight.spec.shape, DType::f32);
  multiply(scratch, Layout::tn, g, h, gram);
  scaled_weight_gradients(scratch, gram, weight, scale, dweight, dscale);
}

void forward(const ProjectResidual&, const Forward<ProjectResidual>& f) {
  Scratch scratch(f.queue);
  project_into(scratch, f.in.x, f.in.h, scaled_weight(scratch, f.in.weight, f.in.scale), f.out.y);
}

void backward(const ProjectResidual&, const Backward<ProjectResidual>& b) {
  Scratch scratch(b.queue);
  if (b.din.h) multiply(scratch, Layout::nn, b.dout.y, scaled_weight(scratch, b.in.weight, b.in.scale), b.din.h);
  project_gradients(scratch, b.dout.y, b.in.h, b.in.weight, b.in.scale, b.din.weight, b.din.scale);
  pass_through(scratch, b.dout.y, b.din.x);
}

namespace {

// [Wq; Wk; Wv] in scratch: the three products as one.
Tensor joint_weight(Scratch& scratch, const QkvProject::In& in) {
  const int64_t rows = in.weight_q.dim(0) + in.weight_k.dim(0) + in.weight_v.dim(0);
  const Tensor out = scratch_tensor(scratch, {rows, in.x.cols()}, in.weight_q.spec.dtype);
  std::byte* to = out.data;
  for (const Tensor& weight : {in.weight_q, in.weight_k, in.weight_v}) {
    check(cudaMemcpyAsync(to, weight.data, weight.spec.bytes(), cudaMemcpyDeviceToDevice, scratch.stream()), "cudaMemcpyAsync");
    to += weight.spec.bytes();
  }
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
  multiply(scratch, Layout::nn, g, weight, b.din.x);
  Tensor part = scratch_tensor(scratch, weight.spec.shape, DType::f32);
  multiply(scratch, Layout::tn, g, b.in.x, part);
  for (const Tensor& dweight : {b.din.weight_q, b.din.weight_k, b.din.weight_v}) {
    part.spec.shape = dweight.spec.shape;
    pass_through(scratch, part, dweight);
    part.data += part.spec.bytes();
  }
}

}  // namespace

void forward(const QkvProject&, const Forward<QkvProject>& f) {
  Scratch scratch(f.queue);
  if (f.out.q.pitch > 0) return multiply(scratch, Layout::nt, f.in.x, joint_weight(scratch, f.in), joint_rows(f.out.q));
  multiply(scratch, Layout::nt, f.in.x, f.in.weight_q, f.out.q);
  multiply(scratch, Layout::nt, f.in.x, f.in.weight_k, f.out.k);
  multiply(scratch, Layout::nt, f.in.x, f.in.weight_v, f.out.v);
}

void backward(const QkvProject&, const Backward<QkvProject>& b) {
  Scratch scratch(b.queue);
  if (b.dout.q && b.dout.q.pitch > 0) return joint_backward(scratch, b);
  Tensor dx = b.din.x;
  if (dx && !b.dout.q && !b.dout.k && !b.dout.v) clear(scratch, dx);
  const auto share = [&](const Tensor& g, const Tensor& weight, const Tensor& dweight) {
    if (!g) return clear(scratch, dweight);
    multiply(scratch, Layout::tn, g, b.in.x, dweight);
    multiply(scratch, Layout::nn, g, weight, dx);
    dx.accumulate = true;
  };
  share(b.dout.q, b.in.weight_q, b.din.weight_q);
  share(b.dout.k, b.in.weight_k, b.din.weight_k);
  share(b.dout.v, b.in.weight_v, b.din.weight_v);
}

}  // namespace fairway::cuda
