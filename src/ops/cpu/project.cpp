// QkvProject, ProjectResidual and Mlp: matrix products whose residual, scale and activation live in the epilogue (spec §4.6,
// §4.8, §6.3, §6.4).
#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"

namespace fairway::cpu {
namespace {

Epilogue residual(const Tensor& x, const Tensor& scale, int64_t columns) {
  return {.kind = EpilogueKind::scale_residual,
          .scale = scale.as<float>(),
          .other = x ? x.as<float>() : nullptr,
          .ld_other = columns};
}

}  // namespace

void forward(const QkvProject&, const Forward<QkvProject>& call) {
  product(*call.queue, times_transposed(call.in.x, call.in.weight_q, call.out.q));
  product(*call.queue, times_transposed(call.in.x, call.in.weight_k, call.out.k));
  product(*call.queue, times_transposed(call.in.x, call.in.weight_v, call.out.v));
}

void backward(const QkvProject&, const Backward<QkvProject>& call) {
  Tensor dx = call.din.x;
  const auto part = [&](const Tensor& weight, const Tensor& g, const Tensor& dweight) {
    if (!g) {
      if (dweight && !dweight.accumulate) std::fill_n(dweight.as<float>(), dweight.numel(), 0.0f);
      return;
    }
    if (dx) product(*call.queue, times_weight(g, weight.as<float>(), dx));
    dx.accumulate = true;
    if (dweight) product(*call.queue, weight_gradient(g, call.in.x, dweight.as<float>(), dweight.accumulate));
  };
  part(call.in.weight_q, call.dout.q, call.din.weight_q);
  part(call.in.weight_k, call.dout.k, call.din.weight_k);
  part(call.in.weight_v, call.dout.v, call.din.weight_v);
}

void forward(const ProjectResidual&, const Forward<ProjectResidual>& call) {
  GemmArgs args = times_transposed(call.in.h, call.in.weight, call.out.y);
  args.epilogue = residual(call.in.x, call.in.scale, args.n);
  product(*call.queue, args);
}

void backward(const ProjectResidual&, const Backward<ProjectResidual>& call) {
  float* g_h = reinterpret_cast<float*>(call.workspace.data);  // G = gᵀ·h (N, C)
  float* scaled = g_h + call.in.weight.numel();                // diag(scale)·W (N, C)
  const bool wants_weight = call.din.weight || call.din.scale;
  if (wants_weight) product(*call.queue, weight_gradient(call.dout.y, call.in.h, g_h, false));
  scaled_weight_gradients(*call.queue, {.weight = call.in.weight,
                                        .scale = call.in.scale,
                                        .product = wants_weight ? g_h : nullptr,
                                        .dweight = call.din.weight,
                                        .dscale = call.din.scale,
                                        .scaled = call.din.h ? scaled : nullptr});
  if (call.din.h) product(*call.queue, times_weight(call.dout.y, scaled, call.din.h));
  if (call.din.x) pass_gradient(*call.queue, call.dout.y, call.din.x);
}

void forward(const Mlp&, const Forward<Mlp>& call) {
  GemmArgs up = times_transposed(call.in.m, call.in.up, call.saved.post);
  up.epilogue = {.kind = EpilogueKind::leaky_relu2, .second = call.saved.act_grad.as<float>(), .ld_second = up.n};
  product(*call.queue, up);
  GemmArgs down = times_transposed(call.saved.post, call.in.down, call.out.y);
  down.epilogue = residual(call.in.x, call.in.scale, down.n);
  product(*call.queue, down);
}

void backward(const Mlp&, const Backward<Mlp>& call) {
  const int64_t hidden = call.in.up.dim(0);
  float* g_post = reinterpret_cast<float*>(call.workspace.data);  // G = gᵀ·post (D, F)
  float* scaled = g_post + call.in.down.numel();                  // diag(scale)·Down (D, F)
  const Tensor dpre = make_view(scaled + call.in.down.numel(), call.saved.post.spec);
  const bool wants_down = call.din.down || call.din.scale, wants_pre = call.din.m || call.din.up;
  if (wants_down) product(*call.queue, weight_gradient(call.dout.y, call.saved.post, g_post, false));
  scaled_weight_gradients(*call.queue, {.weight = call.in.down,
                                        .scale = call.in.scale,
                                        .product = wants_down ? g_post : nullptr,
                                        .dweight = call.din.down,
                                        .dscale = call.din.scale,
                                        .scaled = wants_pre ? scaled : nullptr});
  if (wants_pre) {
    GemmArgs args = times_weight(call.dout.y, scaled, dpre);
    args.epilogue = {.kind = EpilogueKind::multiply, .other = call.saved.act_grad.as<float>(), .ld_other = hidden};
    product(*call.queue, args);
  }
  if (call.din.up) product(*call.queue, weight_gradient(dpre, call.in.m, call.din.up.as<float>(), call.din.up.accumulate));
  if (call.din.m) product(*call.queue, times_weight(dpre, call.in.up.as<float>(), call.din.m));
  if (call.din.x) pass_gradient(*call.queue, call.dout.y, call.din.x);
}

}  // namespace fairway::cpu
