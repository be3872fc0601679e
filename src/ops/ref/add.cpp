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

}  // namespace fairway::ref
