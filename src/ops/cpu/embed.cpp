// Embed and ProjectedEmbed (spec §4.1, §4.2, §6.10). Their backward adds rows into a table: each task owns some rows and
// columns of it and walks the tokens in order, so every element is a sum in one order whoever computes it.
#include "base/error.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"

namespace fairway::cpu {
namespace {

constexpr int64_t kScatterColumns = 64;  // four cache lines of a row per visit
constexpr int64_t kScatterParts = 4;     // of the table's rows

template <class RowOf>
void gather(Queue& queue, const Tensor& table, int64_t count, const Tensor& to, RowOf row_of) {
  const int64_t columns = table.dim(1);
  const RowKernels& kernel = kernels().rows;
  const float* from = table.as<float>();
  float* out = to.as<float>();
  for_rows(queue, count, 2 * columns, [&](RowRange range) {
    for (int64_t m = range.begin; m < range.end; ++m) kernel.copy(from + row_of(m) * columns, out + m * columns, columns);
  });
}

template <class RowOf>
void scatter(Queue& queue, const float* g, int64_t count, const Tensor& dtable, RowOf row_of) {
  const int64_t rows = dtable.dim(0), columns = dtable.dim(1), blocks = (columns + kScatterColumns - 1) / kScatterColumns;
  const RowKernels& kernel = kernels().rows;
  float* to = dtable.as<float>();
  for_tasks(queue, blocks * kScatterParts, (count + rows) * columns, [&](int64_t task) {
    const int64_t first = task / kScatterParts * kScatterColumns, part = task % kScatterParts;
    const int64_t width = std::min(kScatterColumns, columns - first);
    const int64_t begin = rows * part / kScatterParts, end = rows * (part + 1) / kScatterParts;
    for (int64_t row = begin; row < end && !dtable.accumulate; ++row) std::fill_n(to + row * columns + first, width, 0.0f);
    for (int64_t m = 0; m < count; ++m) {
      const int64_t row = row_of(m);
      if (row >= begin && row < end) kernel.add(g + m * columns + first, to + row * columns + first, width);
    }
  });
}

void check_tokens(const Tensor& tokens, int64_t rows) {
  const int32_t* token = tokens.as<int32_t>();
  bool inside = true;
  for (int64_t m = 0; m < tokens.numel(); ++m) inside &= token[m] >= 0 && token[m] < rows;
  FAIRWAY_ASSERT(inside, "token outside of the table");
}

// Calls body with the function that maps a position to its row of the table.
template <class Body>
void with_rows(const ProjectedEmbed& op, const ProjectedEmbed::In& in, Body&& body) {
  const int32_t* tokens = in.tokens.as<int32_t>();
  const int64_t rows = in.table.dim(0), length = op.row_length;
  check_tokens(in.tokens, op.index == ProjectedEmbed::Index::token ? rows : INT32_MAX);
  if (op.index == ProjectedEmbed::Index::token)
    body([=](int64_t m) -> int64_t { return tokens[m]; });
  else
    body([=](int64_t m) { return m % length == 0 ? rows - 1 : bigram_row(tokens[m], tokens[m - 1], rows); });
}

}  // namespace

void forward(const Embed&, const Forward<Embed>& call) {
  const int32_t* tokens = call.in.tokens.as<int32_t>();
  check_tokens(call.in.tokens, call.in.table.dim(0));
  gather(*call.queue, call.in.table, call.in.tokens.numel(), call.out.y, [=](int64_t m) -> int64_t { return tokens[m]; });
}

void backward(const Embed&, const Backward<Embed>& call) {
  const int32_t* tokens = call.in.tokens.as<int32_t>();
  if (!call.din.table) return;
  check_tokens(call.in.tokens, call.in.table.dim(0));
  scatter(*call.queue, call.dout.y.as<float>(), call.in.tokens.numel(), call.din.table,
          [=](int64_t m) -> int64_t { return tokens[m]; });
}

void forward(const ProjectedEmbed& op, const Forward<ProjectedEmbed>& call) {
  with_rows(op, call.in,
            [&](auto row_of) { gather(*call.queue, call.in.table, call.in.tokens.numel(), call.saved.gathered, row_of); });
  GemmArgs args = times_transposed(call.saved.gathered, call.in.proj, call.out.y);
  args.alpha = *call.in.scale.as<float>();
  product(*call.queue, args);
}

// G = gᵀ·gathered: dproj = scale·G, dscale = Σ G⊙proj; the rows' gradients are scale·g·proj.
void backward(const ProjectedEmbed& op, const Backward<ProjectedEmbed>& call) {
  const float scale = *call.in.scale.as<float>();
  const int64_t rows = call.in.proj.dim(0), columns = call.in.proj.dim(1);
  float* g_rows = reinterpret_cast<float*>(call.workspace.data);
  if (call.din.proj || call.din.scale) {
    product(*call.queue, weight_gradient(call.dout.y, call.saved.gathered, g_rows, false));
    double total = 0;
    for (int64_t i = 0; i < rows; ++i)
      total += kernels().update.scaled_row({.weight = call.in.proj.as<float>() + i * columns,
                                            .product = g_rows + i * columns,
                                            .gradient = call.din.proj ? call.din.proj.as<float>() + i * columns : nullptr,
                                            .add = call.din.proj.accumulate},
                                           scale, columns);
    if (call.din.scale) put_gradient(call.din.scale, 0, total);
  }
  if (!call.din.table) return;
  const Tensor dgathered = make_view(g_rows + rows * columns, call.saved.gathered.spec);
  GemmArgs args = times_weight(call.dout.y, call.in.proj.as<float>(), dgathered);
  args.alpha = scale;
  product(*call.queue, args);
  with_rows(op, call.in,
            [&](auto row_of) { scatter(*call.queue, dgathered.as<float>(), call.in.tokens.numel(), call.din.table, row_of); });
}

}  // namespace fairway::cpu
