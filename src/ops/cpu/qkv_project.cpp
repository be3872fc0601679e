#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"

namespace fairway::cpu {

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

}  // namespace fairway::cpu
