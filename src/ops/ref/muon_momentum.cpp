// Momentum with Nesterov's look-ahead and row normalisation, before the orthogonalisation (spec §8.1).
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const MuonMomentum& op, const Forward<MuonMomentum>& f) {
  with_dtype(f.in.grad, [&]<class T>() {
    const Values<T> grad(f.in.grad), stored(f.in.buffer);
    const Target<T> u(f.out.u);
    T* buffer = f.in.buffer.as<T>();
    const double momentum = f.in.scalars.as<double>()[static_cast<size_t>(StepScalar::momentum)];
    const double clip = f.in.clip ? f.in.clip.as<double>()[0] : 1;
    const int64_t width = f.in.grad.cols();
    for (int64_t row = 0; row < f.in.grad.rows(); ++row) {
      const int64_t at = row * width;
      for (int64_t i = at; i < at + width; ++i) buffer[i] = static_cast<T>(momentum * stored[i] + clip * grad[i]);
      const auto ahead = [&](int64_t i) { return clip * grad[at + i] + momentum * stored[at + i]; };
      const double norm = std::sqrt(sum(width, [&](int64_t i) { return ahead(i) * ahead(i); }));
      const double divisor = op.row_norm ? std::max(norm, 1e-7) : 1;
      for (int64_t i = 0; i < width; ++i) u.put(at + i, ahead(i) / divisor);
    }
  });
}

}  // namespace fairway::ref
