// u = v/max(‖v‖, 1e-12), c = y·u, z = y − c·u. Backward (spec §6.5), with a = g·u and y = z + c·u: dy = g − a·u and
// dv = −(1/‖v‖)·Σ_h [a·z + c·(g − a·u)]; below the clamp the norm is a constant: dv = −1e12·Σ_h [a·y + c·g].
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

constexpr double kNormFloor = 1e-12;

}  // namespace

void forward(const Xsa& op, const Forward<Xsa>& f) {
  with_dtype(f.in.y, [&]<class T>() {
    const Values<T> y(f.in.y), v(f.in.v);
    const Target<T> z(f.out.z), dot(f.saved.dot);
    const int64_t size = f.in.y.cols() / op.heads, group = op.heads / op.kv_heads;
    for (int64_t m = 0; m < f.in.y.rows(); ++m)
      for (int64_t h = 0; h < op.heads; ++h) {
        const int64_t head = (m * op.heads + h) * size, value = (m * op.kv_heads + h / group) * size;
        const double norm = std::sqrt(sum(size, [&](int64_t e) { return v[value + e] * v[value + e]; }));
        const double inverse = 1 / std::max(norm, kNormFloor);
        const double c = sum(size, [&](int64_t e) { return y[head + e] * v[value + e] * inverse; });
        dot.put(m * op.heads + h, c);
        for (int64_t e = 0; e < size; ++e) z.put(head + e, y[head + e] - c * v[value + e] * inverse);
      }
  });
}

void backward(const Xsa& op, const Backward<Xsa>& b) {
  with_dtype(b.in.y, [&]<class T>() {
    const Values<T> v(b.in.v), z(b.out.z), dot(b.saved.dot), g(b.dout.z);
    const Target<T> dy(b.din.y), dv(b.din.v);
    const int64_t size = b.in.y.cols() / op.heads, group = op.heads / op.kv_heads;
    for (int64_t m = 0; m < b.in.y.rows(); ++m)
      for (int64_t k = 0; k < op.kv_heads; ++k) {
        const int64_t value = (m * op.kv_heads + k) * size;
        const double norm = std::sqrt(sum(size, [&](int64_t e) { return v[value + e] * v[value + e]; }));
        const bool clamped = norm <= kNormFloor;
        const double inverse = 1 / std::max(norm, kNormFloor);
        const auto u = [&](int64_t e) { return v[value + e] * inverse; };
        const auto along = [&](int64_t head) { return sum(size, [&](int64_t e) { return g[head + e] * u(e); }); };
        for (int64_t e = 0; e < size; ++e) {
          double total = 0;
          for (int64_t h = k * group; h < (k + 1) * group; ++h) {
            const int64_t head = (m * op.heads + h) * size;
            const double a = along(head), c = dot[m * op.heads + h];
            total += clamped ? a * (z[head + e] + c * u(e)) + c * g[head + e] : a * z[head + e] + c * (g[head + e] - a * u(e));
            dy.put(head + e, g[head + e] - a * u(e));
          }
          dv.put(value + e, -inverse * total);
        }
      }
  });
}

}  // namespace fairway::ref
