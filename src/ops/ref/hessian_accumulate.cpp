#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const HessianAccumulate&, const Forward<HessianAccumulate>& f) {
  with_dtype(f.in.rows, [&]<class T>() {
    const Values<T> rows(f.in.rows);
    double* hessian = f.in.hessian.as<double>();
    const int64_t columns = f.in.rows.cols();
    for (int64_t i = 0; i < columns; ++i)
      for (int64_t j = 0; j <= i; ++j)
        hessian[i * columns + j] +=
            sum(f.in.rows.dim(0), [&](int64_t row) { return rows[row * columns + i] * rows[row * columns + j]; });
  });
}

}  // namespace fairway::ref
