// u = v/max(‖v‖, 1e-12), c = y·u, w = y − c·u; z = s·w, s = σ(½·(gate·a[0:W])). Backward (spec §6.5, A.3) with w = z/s never
// divided by s: t = d(gate·a) = ½·s(1−s)·(g·w) = ½·(1−s)·(g·z), and with q = g·u, h = s·g the gradient of w:
// dy = h − s·q·u, dv = −(1/‖v‖)·Σ_h [q·z + c·(h − s·q·u)]; below the clamp the norm is a constant:
// dv = −1e12·Σ_h [q·z + c·(h + s·q·u)]. dgate = Σ t·a[0:W], da[0:W] = Σ_h t·gate.
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

}  // namespace

void forward(const HeadOutput& op, const Forward<HeadOutput>& f) {
  with_dtype(f.in.y, [&]<class T>() {
    const Values<T> y(f.in.y), v(f.in.v), a(f.in.a), gate(f.in.gate);
    const Target<T> z(f.out.z), dot(f.saved.dot), open(f.saved.open);
    const int64_t size = f.in.y.cols() / op.heads, group = op.heads / op.kv_heads;
    const int64_t width = f.in.gate ? f.in.a.cols() : 0, gated = f.in.gate ? f.in.gate.cols() : 0;
    for (int64_t i = 0; i < f.in.y.rows() * op.heads; ++i) {
      const int64_t m = i / op.heads, h = i % op.heads;
      double c = 0, s = 1;
      if (f.in.gate)
        s = sigmoid(HeadOutput::kGateScale * sum(gated, [&](int64_t w) { return gate[h * gated + w] * a[m * width + w]; }));
      if (f.in.v) {
        const Direction<T> u(v, (m * op.kv_heads + h / group) * size, size);
        c = sum(size, [&](int64_t e) { return y[i * size + e] * u(e); });
        for (int64_t e = 0; e < size; ++e) z.put(i * size + e, s * (y[i * size + e] - c * u(e)));
      } else {
        for (int64_t e = 0; e < size; ++e) z.put(i * size + e, s * y[i * size + e]);
      }
      dot.put(i, c);
      open.put(i, s);
    }
  });
}

namespace {

template <class T>
void value_gradients(const HeadOutput& op, const Backward<HeadOutput>& b) {
  const Values<T> v(b.in.v), z(b.out.z), dot(b.saved.dot), open(b.saved.open), g(b.dout.z);
  const Target<T> dy(b.din.y), dv(b.din.v);
  const int64_t size = b.in.y.cols() / op.heads, group = op.heads / op.kv_heads;
  for (int64_t k = 0; k < b.in.y.rows() * op.kv_heads; ++k) {
    const Direction<T> u(v, k * size, size);
    for (int64_t e = 0; e < size; ++e) {
      double total = 0;
      for (int64_t i = k * group; i < (k + 1) * group; ++i) {
        const double q = sum(size, [&](int64_t d) { return g[i * size + d] * u(d); }), s = open[i];
        const double along = s * q * u(e), own = s * g[i * size + e];
        total += q * z[i * size + e] + dot[i] * (u.clamped ? own + along : own - along);
        dy.put(i * size + e, own - along);
      }
      dv.put(k * size + e, -u.inverse * total);
    }
  }
}

template <class T>
void gate_gradients(const HeadOutput& op, const Backward<HeadOutput>& b) {
  const Values<T> z(b.out.z), a(b.in.a), gate(b.in.gate), open(b.saved.open), g(b.dout.z);
  const Target<T> da(b.din.a), dgate(b.din.gate);
  const int64_t size = b.in.y.cols() / op.heads, width = b.in.a.cols(), gated = b.in.gate.cols();
  double* gate_grad = zeros(b.workspace, op.heads * gated);
  for (int64_t m = 0; m < b.in.y.rows(); ++m) {
    const auto logit_grad = [&](int64_t h) {
      const int64_t i = m * op.heads + h;
      return HeadOutput::kGateScale * (1 - open[i]) * sum(size, [&](int64_t e) { return g[i * size + e] * z[i * size + e]; });
    };
    for (int64_t h = 0; h < op.heads; ++h) {
      const double t = logit_grad(h);
      for (int64_t w = 0; w < gated; ++w) gate_grad[h * gated + w] += t * a[m * width + w];
    }
    for (int64_t w = 0; w < width; ++w)
      da.put(m * width + w, w < gated ? sum(op.heads, [&](int64_t h) { return logit_grad(h) * gate[h * gated + w]; }) : 0.0);
  }
  for (int64_t i = 0; i < op.heads * gated; ++i) dgate.put(i, gate_grad[i]);
}

}  // namespace

void backward(const HeadOutput& op, const Backward<HeadOutput>& b) {
  with_dtype(b.in.y, [&]<class T>() {
    if (b.in.v) {
      value_gradients<T>(op, b);
    } else {
      const Values<T> open(b.saved.open), g(b.dout.z);
      const Target<T> dy(b.din.y);
      const int64_t size = b.in.y.cols() / op.heads;
      for (int64_t e = 0; e < b.in.y.numel(); ++e) dy.put(e, open[e / size] * g[e]);
    }
    if (b.in.gate) gate_gradients<T>(op, b);
  });
}

}  // namespace fairway::ref
