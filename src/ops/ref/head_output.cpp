// u = v/max(‖v‖, 1e-12), c = y·u, w = y − c·u; z = s·w, s = σ(½·logit). Backward (spec §6.5, A.3) with w = z/s never divided by
// s: dlogit = ½·s(1−s)·(g·w) = ½·(1−s)·(g·z), and with q = g·u, h = s·g the gradient of w:
// dy = h − s·q·u, dv = −(1/‖v‖)·Σ_h [q·z + c·(h − s·q·u)]; below the clamp the norm is a constant:
// dv = −1e12·Σ_h [q·z + c·(h + s·q·u)].
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

constexpr double kNormFloor = 1e-12;

template <class T>
struct Direction {  // u of one kv head of one row
  Direction(const Values<T>& v, int64_t value, int64_t size) : v_(v), at_(value) {
    const double norm = std::sqrt(sum(size, [&](int64_t e) { return v[value + e] * v[value + e]; }));
    clamped = norm <= kNormFloor;
    inverse = 1 / std::max(norm, kNormFloor);
  }
  double operator()(int64_t e) const { return v_[at_ + e] * inverse; }
  double inverse;
  bool clamped;

 private:
  const Values<T>& v_;
  int64_t at_;
};

template <class T>
double open_of(const Values<T>& logit, bool gated, int64_t head) {
  return gated ? sigmoid(HeadOutput::kGateScale * logit[head]) : 1;
}

}  // namespace

void forward(const HeadOutput& op, const Forward<HeadOutput>& f) {
  with_dtype(f.in.y, [&]<class T>() {
    const Values<T> y(f.in.y), v(f.in.v), logit(f.in.logit);
    const Target<T> z(f.out.z), dot(f.saved.dot);
    const int64_t size = f.in.y.cols() / op.heads, group = op.heads / op.kv_heads;
    for (int64_t i = 0; i < f.in.y.rows() * op.heads; ++i) {
      const double s = open_of(logit, static_cast<bool>(f.in.logit), i);
      double c = 0;
      if (f.in.v) {
        const Direction<T> u(v, i / group * size, size);
        c = sum(size, [&](int64_t e) { return y[i * size + e] * u(e); });
        for (int64_t e = 0; e < size; ++e) z.put(i * size + e, s * (y[i * size + e] - c * u(e)));
      } else {
        for (int64_t e = 0; e < size; ++e) z.put(i * size + e, s * y[i * size + e]);
      }
      dot.put(i, c);
    }
  });
}

namespace {

template <class T>
void value_gradients(const HeadOutput& op, const Backward<HeadOutput>& b) {
  const Values<T> v(b.in.v), z(b.out.z), dot(b.saved.dot), logit(b.in.logit), g(b.dout.z);
  const Target<T> dy(b.din.y), dv(b.din.v);
  const int64_t size = b.in.y.cols() / op.heads, group = op.heads / op.kv_heads;
  for (int64_t k = 0; k < b.in.y.rows() * op.kv_heads; ++k) {
    const Direction<T> u(v, k * size, size);
    for (int64_t e = 0; e < size; ++e) {
      double total = 0;
      for (int64_t i = k * group; i < (k + 1) * group; ++i) {
        const double q = sum(size, [&](int64_t d) { return g[i * size + d] * u(d); });
        const double s = open_of(logit, static_cast<bool>(b.in.logit), i);
        const double along = s * q * u(e), own = s * g[i * size + e];
        total += q * z[i * size + e] + dot[i] * (u.clamped ? own + along : own - along);
        dy.put(i * size + e, own - along);
      }
      dv.put(k * size + e, -u.inverse * total);
    }
  }
}

}  // namespace

void backward(const HeadOutput& op, const Backward<HeadOutput>& b) {
  with_dtype(b.in.y, [&]<class T>() {
    const Values<T> z(b.out.z), logit(b.in.logit), g(b.dout.z);
    const int64_t size = b.in.y.cols() / op.heads;
    if (b.in.v) {
      value_gradients<T>(op, b);
    } else {
      const Target<T> dy(b.din.y);
      for (int64_t e = 0; e < b.in.y.numel(); ++e) dy.put(e, open_of(logit, static_cast<bool>(b.in.logit), e / size) * g[e]);
    }
    const Target<T> dlogit(b.din.logit);
    for (int64_t i = 0; b.in.logit && i < b.in.logit.numel(); ++i)
      dlogit.put(i, HeadOutput::kGateScale * (1 - open_of(logit, true, i)) *
                        sum(size, [&](int64_t e) { return g[i * size + e] * z[i * size + e]; }));
  });
}

}  // namespace fairway::ref
