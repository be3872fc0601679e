// AdamW with decoupled decay (spec §7): p ← p(1 − lr·wd), m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g²,
// p ← p − lr·(m/(1−β₁ᵗ))/(√v/√(1−β₂ᵗ) + ε).
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const AdamWUpdate& op, const Forward<AdamWUpdate>& f) {
  with_dtype(f.in.param, [&]<class T>() {
    const Values<T> grad(f.in.grad);
    T *param = f.in.param.as<T>(), *m = f.in.m.as<T>(), *v = f.in.v.as<T>();
    const double* scalars = f.in.scalars.as<double>();
    const double lr = op.learning_rate * scalars[static_cast<size_t>(StepScalar::learning_rate_scale)];
    const double step = scalars[static_cast<size_t>(StepScalar::adam_step)];
    const double clip = f.in.clip ? f.in.clip.as<double>()[0] : 1;
    const double correction1 = 1 - std::pow(op.beta1, step), correction2 = std::sqrt(1 - std::pow(op.beta2, step));
    for (int64_t i = 0; i < f.in.param.numel(); ++i) {
      const double g = clip * grad[i];
      const double first = op.beta1 * static_cast<double>(m[i]) + (1 - op.beta1) * g;
      const double second = op.beta2 * static_cast<double>(v[i]) + (1 - op.beta2) * g * g;
      const double decayed = static_cast<double>(param[i]) * (1 - lr * op.weight_decay);
      m[i] = static_cast<T>(first);
      v[i] = static_cast<T>(second);
      param[i] = static_cast<T>(decayed - lr * (first / correction1) / (std::sqrt(second) / correction2 + op.eps));
    }
  });
}

}  // namespace fairway::ref
