// Fill, sums of squares, the clip coefficient made of them (spec §7), and the two running sums: accumulate_scaled and lerp.
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const Fill& op, const Forward<Fill>& f) {
  with_dtype(f.in.x, [&]<class T>() { std::fill_n(f.in.x.as<T>(), f.in.x.numel(), static_cast<T>(op.value)); });
}

void forward(const SumSquares& op, const Forward<SumSquares>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    const Values<T> x(f.in.x);
    f.in.totals.as<double>()[op.slot] = sum(f.in.x.numel(), [&](int64_t i) { return x[i] * x[i]; });
  });
}

void forward(const ClipCoefficient& op, const Forward<ClipCoefficient>& f) {
  const Values<double> totals(f.in.totals);
  double* clip = f.in.clip.as<double>();
  const double norm = std::sqrt(sum(f.in.totals.numel(), [&](int64_t i) { return totals[i]; }));
  clip[0] = op.max_norm > 0 ? std::min(1.0, op.max_norm / (norm + 1e-6)) : 1;
  clip[1] = norm;
}

void forward(const AccumulateScaled& op, const Forward<AccumulateScaled>& f) {
  with_dtype(f.in.target, [&]<class T>() {
    const Values<T> source(f.in.source);
    T* target = f.in.target.as<T>();
    const double factor = op.factor * (f.in.coefficient ? f.in.coefficient.as<double>()[0] : 1);
    for (int64_t i = 0; i < f.in.target.numel(); ++i)
      target[i] = static_cast<T>((op.overwrite ? 0.0 : static_cast<double>(target[i])) + factor * source[i]);
  });
}

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
