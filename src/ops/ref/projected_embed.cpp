// o[m] = table[j(m)]·projᵀ, y = scale·o (spec §4.2, §4.6.2). Backward (spec §6.10): dscale = Σ g·o, dproj = scale·Σ g hᵀ,
// dtable[j(m)] += scale·projᵀ·g[m].
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

auto row_lookup(const ProjectedEmbed& op, const ProjectedEmbed::In& in) {
  return [&op, tokens = in.tokens.as<int32_t>(), rows = in.table.dim(0)](int64_t m) -> int64_t {
    FAIRWAY_ASSERT(tokens[m] >= 0, "a token is negative");
    if (op.index == ProjectedEmbed::Index::token) {
      FAIRWAY_ASSERT(tokens[m] < rows, "token outside of the table");
      return tokens[m];
    }
    return m % op.row_length == 0 ? rows - 1 : bigram_row(tokens[m], tokens[m - 1], rows);
  };
}

}  // namespace

void forward(const ProjectedEmbed& op, const Forward<ProjectedEmbed>& f) {
  with_dtype(f.in.table, [&]<class T>() {
    const Values<T> table(f.in.table), proj(f.in.proj), scale(f.in.scale);
    const Target<T> y(f.out.y), gathered(f.saved.gathered);
    const auto row_of = row_lookup(op, f.in);
    const int64_t rows = f.in.tokens.numel(), small = f.in.table.cols(), width = f.in.proj.dim(0);
    for (int64_t m = 0; m < rows; ++m) {
      const int64_t at = row_of(m) * small;
      for (int64_t d = 0; d < small; ++d) gathered.put(m * small + d, table[at + d]);
      for (int64_t n = 0; n < width; ++n)
        y.put(m * width + n, scale[0] * sum(small, [&](int64_t d) { return table[at + d] * proj[n * small + d]; }));
    }
  });
}

void backward(const ProjectedEmbed& op, const Backward<ProjectedEmbed>& b) {
  with_dtype(b.in.table, [&]<class T>() {
    const Values<T> proj(b.in.proj), scale(b.in.scale), h(b.saved.gathered), g(b.dout.y);
    const Target<T> dproj(b.din.proj), dscale(b.din.scale);
    const int64_t rows = b.in.tokens.numel(), small = b.in.table.cols(), width = b.in.proj.dim(0);
    double scale_grad = 0;
    for (int64_t n = 0; n < width; ++n)
      for (int64_t d = 0; d < small; ++d) {
        const double gh = sum(rows, [&](int64_t m) { return g[m * width + n] * h[m * small + d]; });
        scale_grad += gh * proj[n * small + d];
        dproj.put(n * small + d, scale[0] * gh);
      }
    dscale.put(0, scale_grad);
    const auto dtable = scatter_target<T>(b.din.table);
    const auto row_of = row_lookup(op, b.in);
    for (int64_t m = 0; m < rows && dtable; ++m)
      for (int64_t d = 0; d < small; ++d)
        dtable.put(row_of(m) * small + d,
                   scale[0] * sum(width, [&](int64_t n) { return proj[n * small + d] * g[m * width + n]; }));
  });
}

}  // namespace fairway::ref
