// y[i] = x[rows[i]]; dx[rows[i]] += g[i].
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

auto picked_row(const PickRows::In& in) {
  return [rows = in.rows.as<int32_t>(), height = in.x.dim(0)](int64_t i) -> int64_t {
    FAIRWAY_ASSERT(rows[i] >= 0 && rows[i] < height, "a row that is not there");
    FAIRWAY_ASSERT(i == 0 || rows[i - 1] <= rows[i], "rows are picked in their order");
    return rows[i];
  };
}

}  // namespace

void forward(const PickRows&, const Forward<PickRows>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    const Values<T> x(f.in.x);
    const Target<T> y(f.out.y);
    const auto row_of = picked_row(f.in);
    const int64_t width = f.in.x.cols();
    for (int64_t i = 0; i < f.in.rows.numel(); ++i)
      for (int64_t c = 0; c < width; ++c) y.put(i * width + c, x[row_of(i) * width + c]);
  });
}

void backward(const PickRows&, const Backward<PickRows>& b) {
  with_dtype(b.in.x, [&]<class T>() {
    const Values<T> g(b.dout.y);
    const auto dx = scatter_target<T>(b.din.x);
    const auto row_of = picked_row(b.in);
    const int64_t width = b.in.x.cols();
    for (int64_t i = 0; i < b.in.rows.numel(); ++i)
      for (int64_t c = 0; c < width; ++c) dx.put(row_of(i) * width + c, g[i * width + c]);
  });
}

}  // namespace fairway::ref
