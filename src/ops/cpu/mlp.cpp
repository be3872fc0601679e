// Products whose activation, scale and residual live in the epilogue (spec §4.8, §6.3, §6.4).
#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"

namespace fairway::cpu {

void forward(const Mlp&, const Forward<Mlp>& call) {
  GemmArgs up = times_transposed(call.in.m, call.in.up, call.saved.post);
  up.epilogue = {.kind = EpilogueKind::leaky_relu2, .second = call.saved.act_grad.as<float>(), .ld_second = up.n};
  product(*call.queue, up);
  GemmArgs down = times_transposed(call.saved.post, call.in.down, call.out.y);
  down.epilogue = residual_epilogue(call.in.x, call.in.scale, down.n);
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
