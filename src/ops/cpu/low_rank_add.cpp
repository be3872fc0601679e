// Document by document, each as a few products.
#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"

namespace fairway::cpu {
namespace {

// The operands of one document.
Tensor rows_of(const Tensor& t, int64_t document, int64_t length) {
  Tensor out = t;
  if (!t) return out;
  out.spec.shape = {length, t.cols()};
  out.data += static_cast<size_t>(document * length * t.cols()) * sizeof(float);
  return out;
}
Tensor matrix_of(const Tensor& t, int64_t document) {
  Tensor out = t;
  if (!t) return out;
  out.spec.shape = {t.dim(1), t.dim(2)};
  out.data += static_cast<size_t>(document * t.dim(1) * t.dim(2)) * sizeof(float);
  return out;
}

struct OneDocument {
  LowRankAdd::In in, din;
  Tensor low, g;
};

void backward_of(Queue& queue, const LowRankAdd& op, const OneDocument& d, float* workspace) {
  const int64_t length = d.in.x.rows(), rank = d.in.a.dim(0), factor = d.in.b.numel();
  const Tensor dlow = make_view(workspace, {{length, rank}, DType::f32});
  float *product_of_g = workspace + length * rank, *scaled = product_of_g + factor;
  const float* b = d.in.b.as<float>();
  if (d.in.gain) {
    const bool wants = d.din.b || d.din.gain;
    if (wants) product(queue, weight_gradient(d.g, d.low, product_of_g, false));
    scaled_weight_gradients(queue, {.weight = d.in.b,
                                    .scale = d.in.gain,
                                    .product = wants ? product_of_g : nullptr,
                                    .dweight = d.din.b,
                                    .dscale = d.din.gain,
                                    .scaled = scaled});
    b = scaled;
  } else if (d.din.b) {
    product(queue, weight_gradient(d.g, d.low, d.din.b.as<float>(), d.din.b.accumulate));
  }
  if (!d.din.a && !d.din.x) return;
  GemmArgs through = times_weight(d.g, b, dlow);
  through.alpha = static_cast<float>(op.scale);
  product(queue, through);
  if (d.din.a) product(queue, weight_gradient(dlow, d.in.x, d.din.a.as<float>(), d.din.a.accumulate));
  if (d.din.x) product(queue, times_weight(dlow, d.in.a.as<float>(), d.din.x));
}

}  // namespace

void forward(const LowRankAdd& op, const Forward<LowRankAdd>& call) {
  const int64_t documents = call.in.a.dim(0), length = call.in.x.rows() / documents;
  for (int64_t d = 0; d < documents; ++d) {
    const Tensor low = rows_of(call.saved.low, d, length), base = rows_of(call.in.base, d, length);
    GemmArgs down = times_transposed(rows_of(call.in.x, d, length), matrix_of(call.in.a, d), low);
    down.alpha = static_cast<float>(op.scale);
    product(*call.queue, down);
    GemmArgs up = times_transposed(low, matrix_of(call.in.b, d), rows_of(call.out.y, d, length));
    if (call.in.gain || base) up.epilogue = residual_epilogue(base, call.in.gain, up.n);
    product(*call.queue, up);
  }
}

void backward(const LowRankAdd& op, const Backward<LowRankAdd>& call) {
  const int64_t documents = call.in.a.dim(0), length = call.in.x.rows() / documents;
  Tensor dgain = call.din.gain;
  for (int64_t d = 0; d < documents; ++d) {
    const LowRankAdd::In in{.base = {},
                            .x = rows_of(call.in.x, d, length),
                            .a = matrix_of(call.in.a, d),
                            .b = matrix_of(call.in.b, d),
                            .gain = call.in.gain};
    const LowRankAdd::In din{.base = {},
                             .x = rows_of(call.din.x, d, length),
                             .a = matrix_of(call.din.a, d),
                             .b = matrix_of(call.din.b, d),
                             .gain = dgain};
    backward_of(*call.queue, op, {in, din, rows_of(call.saved.low, d, length), rows_of(call.dout.y, d, length)},
                reinterpret_cast<float*>(call.workspace.data));
    dgain.accumulate = true;  // a sum over documents
  }
  if (call.din.base) pass_gradient(*call.queue, call.dout.y, call.din.base);
}

}  // namespace fairway::cpu
