// Additive y = x + w⊙s; gated, γ = σ(gate): y = (1−γ)⊙w⊙s + γ⊙x (spec §4.4, §4.10); gradients in spec §6.8.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const Skip&, const Forward<Skip>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    const Values<T> x(f.in.x), skip(f.in.skip), weight(f.in.weight), gate(f.in.gate);
    const Target<T> y(f.out.y);
    const int64_t width = f.in.x.cols();
    for (int64_t m = 0; m < f.in.x.rows(); ++m)
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = m * width + i;
        const double weighted = weight[i] * skip[at], open = sigmoid(gate[i]);
        y.put(at, f.in.gate ? (1 - open) * weighted + open * x[at] : x[at] + weighted);
      }
  });
}

void backward(const Skip&, const Backward<Skip>& b) {
  with_dtype(b.in.x, [&]<class T>() {
    const Values<T> x(b.in.x), skip(b.in.skip), weight(b.in.weight), gate(b.in.gate), g(b.dout.y);
    const Target<T> dx(b.din.x), dskip(b.din.skip), dweight(b.din.weight), dgate(b.din.gate);
    const int64_t width = b.in.x.cols();
    double *weight_grad = zeros(b.workspace, 2 * width), *gate_grad = weight_grad + width;
    for (int64_t m = 0; m < b.in.x.rows(); ++m)
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = m * width + i;
        const double open = sigmoid(gate[i]), to_skip = b.in.gate ? 1 - open : 1, to_x = b.in.gate ? open : 1;
        dx.put(at, to_x * g[at]);
        dskip.put(at, to_skip * weight[i] * g[at]);
        weight_grad[i] += to_skip * g[at] * skip[at];
        gate_grad[i] += g[at] * (x[at] - weight[i] * skip[at]) * open * (1 - open);
      }
    for (int64_t i = 0; i < width; ++i) {
      dweight.put(i, weight_grad[i]);
      dgate.put(i, gate_grad[i]);
    }
  });
}

}  // namespace fairway::ref
