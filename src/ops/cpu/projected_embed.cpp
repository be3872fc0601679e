#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"
#include "ops/cpu/table_rows.h"

namespace fairway::cpu {
namespace {

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
