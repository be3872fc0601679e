// A product whose scale and residual live in the epilogue (spec §6.4).
#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"

namespace fairway::cpu {

void forward(const ProjectResidual&, const Forward<ProjectResidual>& call) {
  GemmArgs args = times_transposed(call.in.h, call.in.weight, call.out.y);
  args.epilogue = residual_epilogue(call.in.x, call.in.scale, args.n);
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

}  // namespace fairway::cpu
