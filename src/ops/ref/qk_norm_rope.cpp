// Per head q' = γ_h·R(q̂), q̂ = q·r, and the same for k with γ = 1; R rotates pairs (j, j+R/2) of the first R dims by the angles
// of the row's position (spec §4.7). Backward: dγ_h = Σ g·R(q̂), dq̂ = γ_h·Rᵀg, then the norm's gradient (spec §6.6, §6.2).
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

// Element j of R(x), or of Rᵀ(x) with inverse set; x(j) gives the head's elements.
template <class T, class X>
double rotate(const Values<T>& rope, int64_t position, int64_t rotated, bool inverse, const X& x, int64_t j) {
  if (j >= rotated) return x(j);
  const int64_t half = rotated / 2, pair = j % half, angles = position * rotated;
  const double cosine = rope[angles + pair], sine = (inverse ? -1 : 1) * rope[angles + half + pair];
  return j < half ? x(j) * cosine + x(j + half) * sine : -x(j - half) * sine + x(j) * cosine;
}

struct Heads {  // q or k: one row of `count` heads for each position
  Tensor x, y, rstd, dy, dx;
  int64_t count;
};

template <class T>
void forward_heads(const QkNormRope& op, const Heads& heads, const Tensor& rope_in, const Tensor& gain_in) {
  const Values<T> x(heads.x), rope(rope_in), gain(gain_in);
  const Target<T> y(heads.y), rstd(heads.rstd);
  const int64_t size = op.head_dim;
  for (int64_t m = 0; m < heads.x.rows(); ++m)
    for (int64_t h = 0; h < heads.count; ++h) {
      const int64_t head = (m * heads.count + h) * size;
      const double squares = sum(size, [&](int64_t j) { return x[head + j] * x[head + j]; });
      const double r = 1 / std::sqrt(squares / static_cast<double>(size) + op.eps), scale = gain_in ? gain[h] : 1;
      rstd.put(m * heads.count + h, r);
      const auto normed = [&](int64_t j) { return x[head + j] * r; };
      for (int64_t j = 0; j < size; ++j)
        y.put(head + j, scale * rotate(rope, m % op.row_length, rope_in.dim(1), false, normed, j));
    }
}

// gain_grad: H sums of g·R(q̂), or null.
template <class T>
void backward_heads(const QkNormRope& op, const Heads& heads, const Tensor& rope_in, const Tensor& gain_in, double* gain_grad) {
  const Values<T> x(heads.x), rstd(heads.rstd), dy(heads.dy), rope(rope_in), gain(gain_in);
  const Target<T> dx(heads.dx);
  const int64_t size = op.head_dim, rotated = rope_in.dim(1);
  for (int64_t m = 0; m < heads.x.rows(); ++m)
    for (int64_t h = 0; h < heads.count; ++h) {
      const int64_t head = (m * heads.count + h) * size, position = m % op.row_length;
      const double r = rstd[m * heads.count + h], scale = gain_in ? gain[h] : 1;
      const auto normed = [&](int64_t j) { return x[head + j] * r; };
      const auto g = [&](int64_t j) { return dy[head + j]; };
      const auto dnormed = [&](int64_t j) { return scale * rotate(rope, position, rotated, true, g, j); };
      if (gain_grad)
        gain_grad[h] += sum(size, [&](int64_t j) { return g(j) * rotate(rope, position, rotated, false, normed, j); });
      const double along = sum(size, [&](int64_t j) { return dnormed(j) * normed(j); }) / static_cast<double>(size);
      for (int64_t j = 0; j < size; ++j) dx.put(head + j, r * (dnormed(j) - normed(j) * along));
    }
}

}  // namespace

void forward(const QkNormRope& op, const Forward<QkNormRope>& f) {
  with_dtype(f.in.q, [&]<class T>() {
    const Heads q{.x = f.in.q, .y = f.out.q, .rstd = f.saved.rstd_q, .dy = {}, .dx = {}, .count = f.in.q.cols() / op.head_dim};
    const Heads k{.x = f.in.k, .y = f.out.k, .rstd = f.saved.rstd_k, .dy = {}, .dx = {}, .count = f.in.k.cols() / op.head_dim};
    forward_heads<T>(op, q, f.in.rope, f.in.gain);
    forward_heads<T>(op, k, f.in.rope, Tensor{});
  });
}

void backward(const QkNormRope& op, const Backward<QkNormRope>& b) {
  with_dtype(b.in.q, [&]<class T>() {
    const int64_t heads = b.in.q.cols() / op.head_dim, kv_heads = b.in.k.cols() / op.head_dim;
    const Heads q{.x = b.in.q, .y = {}, .rstd = b.saved.rstd_q, .dy = b.dout.q, .dx = b.din.q, .count = heads};
    const Heads k{.x = b.in.k, .y = {}, .rstd = b.saved.rstd_k, .dy = b.dout.k, .dx = b.din.k, .count = kv_heads};
    double* gain_grad = zeros(b.workspace, heads);
    backward_heads<T>(op, q, b.in.rope, b.in.gain, gain_grad);
    backward_heads<T>(op, k, b.in.rope, Tensor{}, nullptr);
    const Target<T> dgain(b.din.gain);
    for (int64_t h = 0; h < heads; ++h) dgain.put(h, gain_grad[h]);
  });
}

}  // namespace fairway::ref
