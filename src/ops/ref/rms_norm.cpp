// y = scale·x·r, r = (mean(x²) + eps)^(−½); dx = scale·r·(g − x̂·(g·x̂)/D), x̂ = x·r (spec §6.2).
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const RmsNorm& op, const Forward<RmsNorm>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    const Values<T> x(f.in.x);
    const Target<T> y(f.out.y), rstd(f.saved.rstd);
    const int64_t width = f.in.x.cols();
    for (int64_t m = 0; m < f.in.x.rows(); ++m) {
      const int64_t row = m * width;
      const double squares = sum(width, [&](int64_t i) { return x[row + i] * x[row + i]; });
      const double r = 1 / std::sqrt(squares / static_cast<double>(width) + op.eps);
      rstd.put(m, r);
      for (int64_t i = 0; i < width; ++i) y.put(row + i, op.scale * x[row + i] * r);
    }
  });
}

void backward(const RmsNorm& op, const Backward<RmsNorm>& b) {
  with_dtype(b.in.x, [&]<class T>() {
    const Values<T> x(b.in.x), rstd(b.saved.rstd), g(b.dout.y);
    const Target<T> dx(b.din.x);
    const int64_t width = b.in.x.cols();
    for (int64_t m = 0; m < b.in.x.rows(); ++m) {
      const int64_t row = m * width;
      const double r = rstd[m];
      const double along = sum(width, [&](int64_t i) { return g[row + i] * x[row + i] * r; }) / static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i) dx.put(row + i, op.scale * r * (g[row + i] - x[row + i] * r * along));
    }
  });
}

}  // namespace fairway::ref
