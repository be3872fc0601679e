// q = x·Wqᵀ, k = x·Wkᵀ, v = x·Wvᵀ; dx = gq·Wq + gk·Wk + gv·Wv, dW = gᵀ·x.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

template <class T>
void project(const Tensor& x_in, const Tensor& weight_in, const Tensor& y_out) {
  const Values<T> x(x_in), weight(weight_in);
  const Target<T> y(y_out);
  const int64_t width = x_in.cols(), outputs = weight_in.dim(0);
  for (int64_t m = 0; m < x_in.rows(); ++m)
    for (int64_t n = 0; n < outputs; ++n)
      y.put(m * outputs + n, sum(width, [&](int64_t i) { return x[m * width + i] * weight[n * width + i]; }));
}

template <class T>
void weight_gradient(const Tensor& x_in, const Tensor& dy, const Tensor& dweight_out) {
  if (!dweight_out) return;
  const Values<T> x(x_in), g(dy);
  const Target<T> dweight(dweight_out);
  const int64_t width = x_in.cols(), outputs = dweight_out.dim(0);
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t i = 0; i < width; ++i)
      dweight.put(n * width + i, sum(x_in.rows(), [&](int64_t m) { return g[m * outputs + n] * x[m * width + i]; }));
}

}  // namespace

void forward(const QkvProject&, const Forward<QkvProject>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    project<T>(f.in.x, f.in.weight_q, f.out.q);
    project<T>(f.in.x, f.in.weight_k, f.out.k);
    project<T>(f.in.x, f.in.weight_v, f.out.v);
  });
}

void backward(const QkvProject&, const Backward<QkvProject>& b) {
  with_dtype(b.in.x, [&]<class T>() {
    weight_gradient<T>(b.in.x, b.dout.q, b.din.weight_q);
    weight_gradient<T>(b.in.x, b.dout.k, b.din.weight_k);
    weight_gradient<T>(b.in.x, b.dout.v, b.din.weight_v);
    if (!b.din.x) return;
    const Values<T> gq(b.dout.q), gk(b.dout.k), gv(b.dout.v);
    const Values<T> weight_q(b.in.weight_q), weight_k(b.in.weight_k), weight_v(b.in.weight_v);
    const Target<T> dx(b.din.x);
    const int64_t width = b.in.x.cols();
    const auto share = [&](int64_t m, int64_t i, const Values<T>& g, const Values<T>& weight, int64_t outputs) {
      return sum(outputs, [&](int64_t n) { return g[m * outputs + n] * weight[n * width + i]; });
    };
    for (int64_t m = 0; m < b.in.x.rows(); ++m)
      for (int64_t i = 0; i < width; ++i)
        dx.put(m * width + i, share(m, i, gq, weight_q, b.in.weight_q.dim(0)) +
                                  share(m, i, gk, weight_k, b.in.weight_k.dim(0)) +
                                  share(m, i, gv, weight_v, b.in.weight_v.dim(0)));
  });
}

}  // namespace fairway::ref
