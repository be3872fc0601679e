// mixed = mix[0]⊙x + mix[1]⊙x0, normed = scale·rms(mixed). The gradient of mixed is its own plus that through the norm
// (spec §6.2); from it dx = mix[0]⊙g, dx0 = mix[1]⊙g, dmix = Σ g⊙(x | x0) (spec §6.7).
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const MixNorm& op, const Forward<MixNorm>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    const Values<T> x(f.in.x), x0(f.in.x0), mix(f.in.mix);
    const Target<T> mixed(f.out.mixed), normed(f.out.normed), rstd(f.saved.rstd);
    const int64_t width = f.in.x.cols();
    for (int64_t m = 0; m < f.in.x.rows(); ++m) {
      const int64_t row = m * width;
      const auto value = [&](int64_t i) { return mix[i] * x[row + i] + mix[width + i] * x0[row + i]; };
      const double squares = sum(width, [&](int64_t i) { return value(i) * value(i); });
      const double r = 1 / std::sqrt(squares / static_cast<double>(width) + op.eps);
      rstd.put(m, r);
      for (int64_t i = 0; i < width; ++i) {
        const double v = value(i);
        mixed.put(row + i, v);
        normed.put(row + i, op.scale * v * r);
      }
    }
  });
}

void backward(const MixNorm& op, const Backward<MixNorm>& b) {
  with_dtype(b.in.x, [&]<class T>() {
    const Values<T> x(b.in.x), x0(b.in.x0), mix(b.in.mix), rstd(b.saved.rstd);
    const Values<T> g_mixed(b.dout.mixed), g_normed(b.dout.normed);
    const Target<T> dx(b.din.x), dx0(b.din.x0), dmix(b.din.mix);
    const int64_t width = b.in.x.cols();
    double* mix_grad = zeros(b.workspace, 2 * width);
    for (int64_t m = 0; m < b.in.x.rows(); ++m) {
      const int64_t row = m * width;
      const double r = rstd[m];
      const auto mixed = [&](int64_t i) { return mix[i] * x[row + i] + mix[width + i] * x0[row + i]; };
      const double along = sum(width, [&](int64_t i) { return g_normed[row + i] * mixed(i) * r; }) / static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = row + i;
        const double g = g_mixed[at] + op.scale * r * (g_normed[at] - mixed(i) * r * along);
        dx.put(at, mix[i] * g);
        dx0.put(at, mix[width + i] * g);
        mix_grad[i] += g * x[at];
        mix_grad[width + i] += g * x0[at];
      }
    }
    for (int64_t i = 0; i < 2 * width; ++i) dmix.put(i, mix_grad[i]);
  });
}

}  // namespace fairway::ref
