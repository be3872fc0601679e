#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const Lerp& op, const Forward<Lerp>& f) {
  with_dtype(f.in.target, [&]<class T>() {
    const Values<T> source(f.in.source);
    T* target = f.in.target.as<T>();
    const double weight = op.slot ? f.in.scalars.as<double>()[static_cast<size_t>(*op.slot)] : op.weight;
    for (int64_t i = 0; i < f.in.target.numel(); ++i)
      target[i] = static_cast<T>((1 - weight) * static_cast<double>(target[i]) + weight * source[i]);
  });
}

}  // namespace fairway::ref
