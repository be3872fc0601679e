#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const SumSquares& op, const Forward<SumSquares>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    const Values<T> x(f.in.x);
    f.in.totals.as<double>()[op.slot] = sum(f.in.x.numel(), [&](int64_t i) { return x[i] * x[i]; });
  });
}

}  // namespace fairway::ref
