#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const AccumulateScaled& op, const Forward<AccumulateScaled>& f) {
  with_dtype(f.in.target, [&]<class T>() {
    const Values<T> source(f.in.source);
    T* target = f.in.target.as<T>();
    const double factor = op.factor * (f.in.coefficient ? f.in.coefficient.as<double>()[0] : 1);
    for (int64_t i = 0; i < f.in.target.numel(); ++i)
      target[i] = static_cast<T>((op.overwrite ? 0.0 : static_cast<double>(target[i])) + factor * source[i]);
  });
}

}  // namespace fairway::ref
