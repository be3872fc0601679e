#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const GptqBlock& op, const Forward<GptqBlock>& f) {
  with_dtype(f.in.work, [&]<class T>() {
    const int64_t columns = f.in.work.cols(), width = f.in.error.cols();
    const Values<T> factor(f.in.factor), scale(f.in.scale);
    const double levels = op.levels;
    for (int64_t row = 0; row < f.in.work.rows(); ++row) {
      T *w = f.in.work.as<T>() + row * columns, *error = f.in.error.as<T>() + row * width;
      const double step = scale[row];
      double loss = 0;
      for (int64_t j = op.begin; j < op.end; ++j) {
        const double value = w[j], q = step > 0 ? std::clamp(std::nearbyint(value / step), -levels, levels) : 0.0;
        const double e = (value - step * q) / factor[j * columns + j];
        w[j] = static_cast<T>(q);
        error[j - op.begin] = static_cast<T>(e);
        loss += e * e;
        for (int64_t l = j + 1; l < op.end; ++l) w[l] = static_cast<T>(static_cast<double>(w[l]) - e * factor[j * columns + l]);
      }
      f.in.loss.as<double>()[row] += loss;
      for (int64_t l = op.end; l < columns; ++l)
        w[l] = static_cast<T>(static_cast<double>(w[l]) - sum(op.end - op.begin, [&](int64_t k) {
                                return static_cast<double>(error[k]) * factor[(op.begin + k) * columns + l];
                              }));
    }
  });
}

}  // namespace fairway::ref
