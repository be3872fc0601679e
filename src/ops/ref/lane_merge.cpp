#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

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
