// Per row s = max(reach/levels, scale_floor), wq = clamp(round_half_even(w/s), −levels, levels)·s, the reach being absmax or so
// many standard deviations; a row of zeros without a floor stays zero. The gradient passes through unchanged (spec §11.3).
#include <cmath>

#include "base/half.h"
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

template <class T>
double step_of(const FakeQuant& op, const Values<T>& weight, int64_t begin, int64_t width) {
  double absmax = 0, sum = 0, squares = 0;
  for (int64_t i = begin; i < begin + width; ++i) absmax = std::max(absmax, std::abs(weight[i])), sum += weight[i];
  double reach = absmax;
  if (op.deviations > 0) {
    const auto count = static_cast<double>(width);
    for (int64_t i = begin; i < begin + width; ++i) squares += (weight[i] - sum / count) * (weight[i] - sum / count);
    const double clip = width < 2 ? 0 : op.deviations * std::sqrt(squares / (count - 1));
    if (!(absmax > FakeQuant::kDegenerate * clip)) reach = clip;
  }
  const double step = std::max(reach / op.levels, op.scale_floor);
  return op.half_step ? static_cast<double>(from_half(to_half(static_cast<float>(step)))) : step;
}

}  // namespace

void forward(const FakeQuant& op, const Forward<FakeQuant>& f) {
  with_dtype(f.in.weight, [&]<class T>() {
    const Values<T> weight(f.in.weight);
    const Target<T> quantized(f.out.quantized);
    const int64_t width = f.in.weight.cols();
    const double levels = op.levels;
    for (int64_t row = 0; row < f.in.weight.rows(); ++row) {
      const double step = step_of(op, weight, row * width, width);
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
