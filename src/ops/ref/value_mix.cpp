#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const ValueMix&, const Forward<ValueMix>& f) {
  with_dtype(f.in.v, [&]<class T>() {
    const Values<T> v(f.in.v), embed(f.in.embed), scale(f.in.scale);
    const Target<T> y(f.out.y);
    for (int64_t i = 0; i < f.in.v.numel(); ++i) y.put(i, v[i] + scale[0] * embed[i]);
  });
}

void backward(const ValueMix&, const Backward<ValueMix>& b) {
  with_dtype(b.in.v, [&]<class T>() {
    const Values<T> embed(b.in.embed), scale(b.in.scale), g(b.dout.y);
    const Target<T> dv(b.din.v), dembed(b.din.embed), dscale(b.din.scale);
    const int64_t count = b.in.v.numel();
    for (int64_t i = 0; i < count; ++i) {
      dv.put(i, g[i]);
      dembed.put(i, scale[0] * g[i]);
    }
    dscale.put(0, sum(count, [&](int64_t i) { return g[i] * embed[i]; }));
  });
}

}  // namespace fairway::ref
