// Per row s = max(absmax/levels, scale_floor), wq = clamp(round_half_even(w/s), −levels, levels)·s; a row of zeros without a
// floor stays zero. The gradient passes through unchanged (spec §11.3).
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const FakeQuant& op, const Forward<FakeQuant>& f) {
  with_dtype(f.in.weight, [&]<class T>() {
    const Values<T> weight(f.in.weight);
    const Target<T> quantized(f.out.quantized);
    const int64_t width = f.in.weight.cols();
    const double levels = op.levels;
    for (int64_t row = 0; row < f.in.weight.rows(); ++row) {
      double absmax = 0;
      for (int64_t i = 0; i < width; ++i) absmax = std::max(absmax, std::abs(weight[row * width + i]));
      const double step = std::max(absmax / levels, op.scale_floor);
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = row * width + i;
        // nearbyint rounds halves to even in the default rounding mode.
        quantized.put(at, step > 0 ? std::clamp(std::nearbyint(weight[at] / step), -levels, levels) * step : 0.0);
      }
    }
  });
}

void backward(const FakeQuant&, const Backward<FakeQuant>& b) {
  with_dtype(b.in.weight, [&]<class T>() {
    const Values<T> g(b.dout.quantized);
    const Target<T> dweight(b.din.weight);
    for (int64_t i = 0; i < b.in.weight.numel(); ++i) dweight.put(i, g[i]);
  });
}

}  // namespace fairway::ref
