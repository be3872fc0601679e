// Decay and scaled step, after the orthogonalisation (spec §8.1).
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const MuonApply& op, const Forward<MuonApply>& f) {
  with_dtype(f.in.param, [&]<class T>() {
    const Values<T> o(f.in.o);
    T* param = f.in.param.as<T>();
    const double lr = op.learning_rate * f.in.scalars.as<double>()[static_cast<size_t>(StepScalar::learning_rate_scale)];
    const double shape_scale =
        std::sqrt(std::max(1.0, static_cast<double>(f.in.param.dim(1)) / static_cast<double>(f.in.param.dim(2))));
    for (int64_t i = 0; i < f.in.param.numel(); ++i)
      param[i] = static_cast<T>(static_cast<double>(param[i]) * (1 - lr * op.weight_decay) - lr * shape_scale * o[i]);
  });
}

}  // namespace fairway::ref
