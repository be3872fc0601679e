// z_h = s_h·y_h, s_h = σ(½·(gate_h·a[0:W])). Backward (spec A.3): dy = s·g, d(gate_h·a) = ½·s(1−s)·(g·y) = t_h,
// dgate_h = Σ t_h·a[0:W], da[0:W] = Σ_h t_h·gate_h.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const AttnGate& op, const Forward<AttnGate>& f) {
  with_dtype(f.in.y, [&]<class T>() {
    const Values<T> a(f.in.a), y(f.in.y), gate(f.in.gate);
    const Target<T> z(f.out.z), open(f.saved.open);
    const int64_t width = f.in.a.cols(), gated = f.in.gate.cols(), size = f.in.y.cols() / op.heads;
    for (int64_t m = 0; m < f.in.y.rows(); ++m)
      for (int64_t h = 0; h < op.heads; ++h) {
        const int64_t head = (m * op.heads + h) * size;
        const double s =
            sigmoid(AttnGate::kScale * sum(gated, [&](int64_t i) { return gate[h * gated + i] * a[m * width + i]; }));
        open.put(m * op.heads + h, s);
        for (int64_t e = 0; e < size; ++e) z.put(head + e, s * y[head + e]);
      }
  });
}

void backward(const AttnGate& op, const Backward<AttnGate>& b) {
  with_dtype(b.in.y, [&]<class T>() {
    const Values<T> a(b.in.a), y(b.in.y), gate(b.in.gate), open(b.saved.open), g(b.dout.z);
    const Target<T> da(b.din.a), dy(b.din.y), dgate(b.din.gate);
    const int64_t width = b.in.a.cols(), gated = b.in.gate.cols(), size = b.in.y.cols() / op.heads;
    double* gate_grad = zeros(b.workspace, op.heads * gated);
    for (int64_t m = 0; m < b.in.y.rows(); ++m) {
      const auto logit_grad = [&](int64_t h) {
        const int64_t head = (m * op.heads + h) * size;
        const double s = open[m * op.heads + h];
        return AttnGate::kScale * s * (1 - s) * sum(size, [&](int64_t e) { return g[head + e] * y[head + e]; });
      };
      for (int64_t h = 0; h < op.heads; ++h) {
        const int64_t head = (m * op.heads + h) * size;
        const double t = logit_grad(h);
        for (int64_t e = 0; e < size; ++e) dy.put(head + e, open[m * op.heads + h] * g[head + e]);
        for (int64_t i = 0; i < gated; ++i) gate_grad[h * gated + i] += t * a[m * width + i];
      }
      for (int64_t i = 0; i < width; ++i)
        da.put(m * width + i, i < gated ? sum(op.heads, [&](int64_t h) { return logit_grad(h) * gate[h * gated + i]; }) : 0.0);
    }
    for (int64_t i = 0; i < op.heads * gated; ++i) dgate.put(i, gate_grad[i]);
  });
}

}  // namespace fairway::ref
