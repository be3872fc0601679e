// y[m] = table[tokens[m]]; dtable[tokens[m]] += g[m], in row order (spec §6.10).
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

auto row_lookup(const Embed::In& in) {
  return [tokens = in.tokens.as<int32_t>(), rows = in.table.dim(0)](int64_t m) -> int64_t {
    FAIRWAY_ASSERT(tokens[m] >= 0 && tokens[m] < rows, "token outside of the table");
    return tokens[m];
  };
}

}  // namespace

void forward(const Embed&, const Forward<Embed>& f) {
  with_dtype(f.in.table, [&]<class T>() {
    const Values<T> table(f.in.table);
    const Target<T> y(f.out.y);
    const auto row_of = row_lookup(f.in);
    const int64_t width = f.in.table.cols();
    for (int64_t m = 0; m < f.in.tokens.numel(); ++m)
      for (int64_t i = 0; i < width; ++i) y.put(m * width + i, table[row_of(m) * width + i]);
  });
}

void backward(const Embed&, const Backward<Embed>& b) {
  with_dtype(b.in.table, [&]<class T>() {
    const Values<T> g(b.dout.y);
    const auto dtable = scatter_target<T>(b.din.table);
    const auto row_of = row_lookup(b.in);
    const int64_t width = b.in.table.cols();
    for (int64_t m = 0; m < b.in.tokens.numel(); ++m)
      for (int64_t i = 0; i < width; ++i) dtable.put(row_of(m) * width + i, g[m * width + i]);
  });
}

}  // namespace fairway::ref
