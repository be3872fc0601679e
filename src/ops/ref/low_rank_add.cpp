// y_d = base_d + gain⊙(low_d·B_dᵀ), low_d = scale·x_d·A_dᵀ; gradients as the header gives them.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

// Rows and places of the operands; document d's rows are [d·length, (d + 1)·length).
struct Documents {
  int64_t count, length, inner, rank, width;
  explicit Documents(const LowRankAdd::In& in)
      : count(in.a.dim(0)), length(in.x.rows() / count), inner(in.x.cols()), rank(in.a.dim(1)), width(in.b.dim(1)) {}
  int64_t a(int64_t d, int64_t r, int64_t c) const { return (d * rank + r) * inner + c; }
  int64_t b(int64_t d, int64_t n, int64_t r) const { return (d * width + n) * rank + r; }
};

}  // namespace

void forward(const LowRankAdd& op, const Forward<LowRankAdd>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    const Documents o(f.in);
    const Values<T> base(f.in.base), x(f.in.x), a(f.in.a), b(f.in.b), gain(f.in.gain), low(f.saved.low);
    const Target<T> y(f.out.y), kept(f.saved.low);
    for (int64_t m = 0; m < f.in.x.rows(); ++m) {
      const int64_t d = m / o.length;
      for (int64_t r = 0; r < o.rank; ++r)
        kept.put(m * o.rank + r, op.scale * sum(o.inner, [&](int64_t c) { return x[m * o.inner + c] * a[o.a(d, r, c)]; }));
      for (int64_t n = 0; n < o.width; ++n) {
        const double added = sum(o.rank, [&](int64_t r) { return low[m * o.rank + r] * b[o.b(d, n, r)]; });
        y.put(m * o.width + n, base[m * o.width + n] + (f.in.gain ? gain[n] : 1) * added);
      }
    }
  });
}

void backward(const LowRankAdd& op, const Backward<LowRankAdd>& call) {
  with_dtype(call.in.x, [&]<class T>() {
    const Documents o(call.in);
    const Values<T> x(call.in.x), a(call.in.a), b(call.in.b), gain(call.in.gain), low(call.saved.low), g(call.dout.y);
    const Target<T> dbase(call.din.base), dx(call.din.x), da(call.din.a), db(call.din.b), dgain(call.din.gain);
    const auto gained = [&](int64_t n) { return call.in.gain ? gain[n] : 1; };
    for (int64_t i = 0; i < call.dout.y.numel(); ++i) dbase.put(i, g[i]);
    for (int64_t d = 0; d < o.count && (dx || da); ++d) {
      double* dlow = zeros(call.workspace, o.length * o.rank);  // scale·(gain⊙g)·B
      const int64_t first = d * o.length;
      for (int64_t m = 0; m < o.length; ++m) {
        for (int64_t r = 0; r < o.rank; ++r)
          dlow[m * o.rank + r] =
              op.scale * sum(o.width, [&](int64_t n) { return gained(n) * g[(first + m) * o.width + n] * b[o.b(d, n, r)]; });
        for (int64_t c = 0; c < o.inner; ++c)
          dx.put((first + m) * o.inner + c, sum(o.rank, [&](int64_t r) { return dlow[m * o.rank + r] * a[o.a(d, r, c)]; }));
      }
      for (int64_t r = 0; r < o.rank; ++r)
        for (int64_t c = 0; c < o.inner; ++c)
          da.put(o.a(d, r, c), sum(o.length, [&](int64_t m) { return dlow[m * o.rank + r] * x[(first + m) * o.inner + c]; }));
    }
    for (int64_t n = 0; n < o.width && (db || dgain); ++n) {
      double gain_gradient = 0;
      for (int64_t d = 0; d < o.count; ++d)
        for (int64_t r = 0; r < o.rank; ++r) {
          const double product = sum(o.length, [&](int64_t i) {
            const int64_t m = d * o.length + i;
            return g[m * o.width + n] * low[m * o.rank + r];
          });
          db.put(o.b(d, n, r), gained(n) * product);
          gain_gradient += product * b[o.b(d, n, r)];
        }
      dgain.put(n, gain_gradient);
    }
  });
}

}  // namespace fairway::ref
