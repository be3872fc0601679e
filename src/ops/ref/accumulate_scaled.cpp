#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const AccumulateScaled& op, const Forward<AccumulateScaled>& f) {
  const double factor = op.factor * (f.in.coefficient ? f.in.coefficient.as<double>()[0] : 1);
  const auto run = [&](const auto& source, const auto& before, const auto& put) {
    for (int64_t i = 0; i < f.in.target.numel(); ++i) {
      const double sum = (op.overwrite ? 0.0 : before[i]) + factor * source[i];
      put(i, op.round ? static_cast<double>(through_bf16(static_cast<float>(sum))) : sum);
    }
  };
  with_dtype(f.in.source, [&]<class S>() {
    const Values<S> source(f.in.source);
    if (f.in.target.spec.dtype == DType::bf16) {
      auto* target = reinterpret_cast<uint16_t*>(f.in.target.data);
      run(source, Values<float>(f.in.target), [&](int64_t i, double sum) { target[i] = to_bf16(static_cast<float>(sum)); });
    } else {
      S* target = f.in.target.as<S>();
      run(source, Values<S>(f.in.target), [&](int64_t i, double sum) { target[i] = static_cast<S>(sum); });
    }
  });
}

}  // namespace fairway::ref
