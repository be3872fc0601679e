// Ops that join two streams element by element: add, value_mix, lane_merge.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const Add&, const Forward<Add>& f) {
  with_dtype(f.in.a, [&]<class T>() {
    const Values<T> a(f.in.a), b(f.in.b);
    const Target<T> y(f.out.y);
    for (int64_t i = 0; i < f.in.a.numel(); ++i) y.put(i, a[i] + b[i]);
  });
}

void backward(const Add&, const Backward<Add>& b) {
  with_dtype(b.in.a, [&]<class T>() {
    const Values<T> g(b.dout.y);
    const Target<T> da(b.din.a), db(b.din.b);
    for (int64_t i = 0; i < b.in.a.numel(); ++i) {
      da.put(i, g[i]);
      db.put(i, g[i]);
    }
  });
}

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

void forward(const LaneMerge&, const Forward<LaneMerge>& f) {
  with_dtype(f.in.lane0, [&]<class T>() {
    const Values<T> lane0(f.in.lane0), lane1(f.in.lane1);
    const Target<T> y(f.out.y);
    for (int64_t i = 0; i < f.in.lane0.numel(); ++i) y.put(i, 0.5 * (lane0[i] + lane1[i]));
  });
}

void backward(const LaneMerge&, const Backward<LaneMerge>& b) {
  with_dtype(b.in.lane0, [&]<class T>() {
    const Values<T> g(b.dout.y);
    const Target<T> dlane0(b.din.lane0), dlane1(b.din.lane1);
    for (int64_t i = 0; i < b.in.lane0.numel(); ++i) {
      dlane0.put(i, 0.5 * g[i]);
      dlane1.put(i, 0.5 * g[i]);
    }
  });
}

}  // namespace fairway::ref
