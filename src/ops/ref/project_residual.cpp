// y = x + scale⊙(h·Wᵀ). Backward (spec §6.4), with G = gᵀ·h: dx = g, dh = (scale⊙g)·W, dW = diag(scale)·G,
// dscale_n = Σ_c G_nc W_nc.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const ProjectResidual&, const Forward<ProjectResidual>& f) {
  with_dtype(f.in.h, [&]<class T>() {
    const Values<T> x(f.in.x), h(f.in.h), weight(f.in.weight), scale(f.in.scale);
    const Target<T> y(f.out.y);
    const int64_t inner = f.in.h.cols(), width = f.in.weight.dim(0);
    for (int64_t m = 0; m < f.in.h.rows(); ++m)
      for (int64_t n = 0; n < width; ++n)
        y.put(m * width + n,
              x[m * width + n] + scale[n] * sum(inner, [&](int64_t c) { return h[m * inner + c] * weight[n * inner + c]; }));
  });
}

void backward(const ProjectResidual&, const Backward<ProjectResidual>& b) {
  with_dtype(b.in.h, [&]<class T>() {
    const Values<T> h(b.in.h), weight(b.in.weight), scale(b.in.scale), g(b.dout.y);
    const Target<T> dx(b.din.x), dh(b.din.h), dweight(b.din.weight), dscale(b.din.scale);
    const int64_t rows = b.in.h.rows(), inner = b.in.h.cols(), width = b.in.weight.dim(0);
    for (int64_t i = 0; i < rows * width; ++i) dx.put(i, g[i]);
    for (int64_t m = 0; m < rows && dh; ++m)
      for (int64_t c = 0; c < inner; ++c)
        dh.put(m * inner + c, sum(width, [&](int64_t n) { return scale[n] * g[m * width + n] * weight[n * inner + c]; }));
    for (int64_t n = 0; n < width && (dweight || dscale); ++n) {
      double scale_grad = 0;
      for (int64_t c = 0; c < inner; ++c) {
        const double gh = sum(rows, [&](int64_t m) { return g[m * width + n] * h[m * inner + c]; });
        dweight.put(n * inner + c, scale[n] * gh);
        scale_grad += gh * weight[n * inner + c];
      }
      dscale.put(n, scale_grad);
    }
  });
}

}  // namespace fairway::ref
