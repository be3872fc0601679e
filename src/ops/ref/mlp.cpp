// pre = m·Upᵀ, act_grad = pre > 0 ? 2·pre : ½·pre, post = ½·act_grad·pre, y = x + scale⊙(post·Downᵀ) (spec §4.8). Backward
// (spec §6.3, §6.4): with G = gᵀ·post, dDown = diag(scale)·G, dscale_i = Σ_f G_if Down_if;
// dpre = ((scale⊙g)·Down)⊙act_grad, dUp = dpreᵀ·m, dm = dpre·Up.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

template <class T>
void backward_down(const Backward<Mlp>& b) {
  const Values<T> down(b.in.down), scale(b.in.scale), post(b.saved.post), g(b.dout.y);
  const Target<T> ddown(b.din.down), dscale(b.din.scale);
  const int64_t rows = b.in.m.rows(), width = b.in.m.cols(), hidden = b.in.up.dim(0);
  for (int64_t i = 0; i < width && (ddown || dscale); ++i) {
    double scale_grad = 0;
    for (int64_t f = 0; f < hidden; ++f) {
      const double gp = sum(rows, [&](int64_t m) { return g[m * width + i] * post[m * hidden + f]; });
      ddown.put(i * hidden + f, scale[i] * gp);
      scale_grad += gp * down[i * hidden + f];
    }
    dscale.put(i, scale_grad);
  }
}

template <class T>
void backward_up(const Backward<Mlp>& b) {
  const Values<T> in(b.in.m), up(b.in.up), down(b.in.down), scale(b.in.scale), act_grad(b.saved.act_grad), g(b.dout.y);
  const Target<T> dm(b.din.m), dup(b.din.up);
  if (!dm && !dup) return;
  const int64_t rows = b.in.m.rows(), width = b.in.m.cols(), hidden = b.in.up.dim(0);
  FAIRWAY_ASSERT(b.workspace.spec.bytes() >= static_cast<size_t>(rows * hidden) * sizeof(T), "the workspace is too small");
  T* dpre = reinterpret_cast<T*>(b.workspace.data);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t f = 0; f < hidden; ++f) {
      const double dpost = sum(width, [&](int64_t i) { return scale[i] * g[m * width + i] * down[i * hidden + f]; });
      dpre[m * hidden + f] = static_cast<T>(dpost * act_grad[m * hidden + f]);
    }
  for (int64_t f = 0; f < hidden && dup; ++f)
    for (int64_t i = 0; i < width; ++i)
      dup.put(f * width + i, sum(rows, [&](int64_t m) { return dpre[m * hidden + f] * in[m * width + i]; }));
  for (int64_t m = 0; m < rows && dm; ++m)
    for (int64_t i = 0; i < width; ++i)
      dm.put(m * width + i, sum(hidden, [&](int64_t f) { return dpre[m * hidden + f] * up[f * width + i]; }));
}

}  // namespace

void forward(const Mlp&, const Forward<Mlp>& f) {
  with_dtype(f.in.m, [&]<class T>() {
    const Values<T> x(f.in.x), in(f.in.m), up(f.in.up), down(f.in.down), scale(f.in.scale), stored(f.saved.post);
    const Target<T> y(f.out.y), act_grad(f.saved.act_grad), post(f.saved.post);
    const int64_t width = f.in.m.cols(), hidden = f.in.up.dim(0);
    for (int64_t m = 0; m < f.in.m.rows(); ++m) {
      for (int64_t j = 0; j < hidden; ++j) {
        const double pre = sum(width, [&](int64_t i) { return in[m * width + i] * up[j * width + i]; });
        const double slope = pre > 0 ? 2 * pre : 0.5 * pre;
        act_grad.put(m * hidden + j, slope);
        post.put(m * hidden + j, 0.5 * slope * pre);
      }
      for (int64_t i = 0; i < width; ++i)
        y.put(m * width + i, x[m * width + i] + scale[i] * sum(hidden, [&](int64_t j) {
                                                  return stored[m * hidden + j] * down[i * hidden + j];
                                                }));
    }
  });
}

void backward(const Mlp&, const Backward<Mlp>& b) {
  with_dtype(b.in.m, [&]<class T>() {
    const Values<T> g(b.dout.y);
    const Target<T> dx(b.din.x);
    for (int64_t i = 0; i < b.in.m.numel(); ++i) dx.put(i, g[i]);
    backward_down<T>(b);
    backward_up<T>(b);
  });
}

}  // namespace fairway::ref
