// logit_h = gate_h·a[0:W]; da[0:W] = Σ_h dlogit_h·gate_h, dgate_h = Σ_rows dlogit_h·a[0:W].
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const GateLogits&, const Forward<GateLogits>& f) {
  with_dtype(f.in.a, [&]<class T>() {
    const Values<T> a(f.in.a), gate(f.in.gate);
    const Target<T> logit(f.out.logit);
    const int64_t heads = f.in.gate.dim(0), width = f.in.a.cols(), gated = f.in.gate.cols();
    for (int64_t i = 0; i < f.in.a.rows() * heads; ++i)
      logit.put(i, sum(gated, [&](int64_t w) { return gate[i % heads * gated + w] * a[i / heads * width + w]; }));
  });
}

void backward(const GateLogits&, const Backward<GateLogits>& b) {
  with_dtype(b.in.a, [&]<class T>() {
    const Values<T> a(b.in.a), gate(b.in.gate), g(b.dout.logit);
    const Target<T> da(b.din.a), dgate(b.din.gate);
    const int64_t heads = b.in.gate.dim(0), width = b.in.a.cols(), gated = b.in.gate.cols(), rows = b.in.a.rows();
    for (int64_t i = 0; i < rows * width; ++i) {
      const int64_t m = i / width, w = i % width;
      da.put(i, w < gated ? sum(heads, [&](int64_t h) { return g[m * heads + h] * gate[h * gated + w]; }) : 0.0);
    }
    for (int64_t i = 0; i < heads * gated; ++i)
      dgate.put(i, sum(rows, [&](int64_t m) { return g[m * heads + i / gated] * a[m * width + i % gated]; }));
  });
}

}  // namespace fairway::ref
