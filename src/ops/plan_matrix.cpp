// Shape rules, workspaces and flop counts of the ops around matrix products and attention.
#include "ops/all_ops.h"
#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {
namespace {

void require_matrix(const Tensor& w, int64_t columns, std::string_view op, const char* what) {
  require(w.spec.shape.rank == 2 && w.dim(1) == columns, op,
          std::string(what) + " must be (·, " + std::to_string(columns) + ") but is " + w.spec.shape.text());
}

double product_flops(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

size_t bytes_of(const Tensor& like_this, int64_t count) { return static_cast<size_t>(count) * size_of(like_this.spec.dtype); }

}  // namespace

OpPlan ProjectedEmbed::plan(const In& in) const {
  require(in.tokens.spec.dtype == DType::i32, name, "tokens must be i32");
  require(in.table.spec.shape.rank == 2 && (index == Index::token || in.table.dim(0) >= 2), name,
          "table must be (R, d), R >= 2 for bigrams");
  require_matrix(in.proj, in.table.dim(1), name, "proj");
  require(in.scale.numel() == 1, name, "scale must be one number");
  const int64_t rows = in.tokens.numel(), width = in.table.dim(1), out = in.proj.dim(0);
  require(index == Index::token || (row_length > 0 && rows % row_length == 0), name, "rows must be whole sequences");
  return {.out = {like(in.proj, {rows, out})},
          .saved = {like(in.proj, {rows, width})},
          .backward_workspace = bytes_of(in.proj, out * width + rows * width),
          .flops = product_flops(rows, out, width)};
}

OpPlan QkvProject::plan(const In& in) const {
  const int64_t rows = in.x.rows(), width = in.x.cols();
  require_matrix(in.weight_q, width, name, "weight_q");
  require_matrix(in.weight_k, width, name, "weight_k");
  require_matrix(in.weight_v, width, name, "weight_v");
  const int64_t q = in.weight_q.dim(0), k = in.weight_k.dim(0), v = in.weight_v.dim(0);
  return {.out = {like(in.x, {rows, q}), like(in.x, {rows, k}), like(in.x, {rows, v})},
          .flops = product_flops(rows, q + k + v, width)};
}

OpPlan Attention::plan(const In& in) const {
  const int64_t rows = in.q.rows();
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, name, "kv_heads must divide heads");
  require(in.q.cols() % heads == 0 && in.q.cols() / heads * kv_heads == in.k.cols() && in.k.spec == in.v.spec &&
              in.k.rows() == rows,
          name, "q, k and v must have the same rows and head size");
  require(row_length > 0 && rows % row_length == 0, name, "rows must be whole sequences");
  if (in.segment_start)
    require(in.segment_start.spec.dtype == DType::i32 && in.segment_start.numel() == rows, name,
            "segment_start must be i32 (M)");
  // One query's scores in double; then sums of dk and dv beside two such rows.
  const auto one_query = static_cast<size_t>(rows) * sizeof(double);
  return {.out = {in.q.spec},
          .saved = {like(in.q, {rows, heads})},
          .forward_workspace = one_query,
          .backward_workspace = 2 * static_cast<size_t>(in.k.numel()) * sizeof(double) + 2 * one_query,
          .flops = 2.0 * static_cast<double>(rows) * static_cast<double>(row_length) * static_cast<double>(in.q.cols())};
}

OpPlan AttentionCached::plan(const In& in) const {
  const int64_t rows = in.q.rows();
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, name, "kv_heads must divide heads");
  require(in.q.cols() % heads == 0 && in.q.cols() / heads * kv_heads == in.k.cols() && in.k.spec == in.v.spec &&
              in.k.rows() == rows,
          name, "q, k and v must have the same rows and head size");
  const int64_t size = in.q.cols() / heads, length = in.values.dim(1);
  require(length > 0 && length % kCacheKeys == 0 && in.values.spec.shape == Shape{rows * kv_heads, length, size} &&
              in.keys.spec.shape == Shape{rows * kv_heads, length / kCacheKeys, size, kCacheKeys},
          name, "the cache must hold whole blocks of positions for every row and kv head");
  require(in.position.spec.dtype == DType::i32 && in.position.numel() == 1, name, "position must be one i32");
  return {.out = {in.q.spec},
          .forward_workspace = static_cast<size_t>(rows * heads * length) * sizeof(double),  // scores
          .flops = 2.0 * static_cast<double>(rows) * static_cast<double>(length) * static_cast<double>(in.q.cols())};
}

OpPlan DrawTokens::plan(const In& in) const {
  const int64_t rows = in.logits.rows(), length = in.text.cols();
  const auto indices = [](const Tensor& tensor, int64_t count) {
    return tensor.spec.dtype == DType::i32 && tensor.numel() == count;
  };
  require(in.logits.numel() > 0 && in.chances.spec == Spec{{rows, length}, DType::f64} && indices(in.text, rows * length), name,
          "chances must be f64 and text i32, both (B, T)");
  require(indices(in.position, 1) && indices(in.pick, rows) && indices(in.tokens, rows), name,
          "position must be one i32, pick and tokens one for each row");
  require(in.window.spec.dtype == DType::i32 && in.window.numel() > 0 && in.window.numel() % rows == 0, name,
          "window must be i32 with equally many places for each row");
  require(in.rope.dim(0) >= length && in.angles.numel() * in.rope.dim(0) == in.rope.numel(), name,
          "angles must be one row of rope, which has one for each position");
  return {.forward_workspace = static_cast<size_t>(in.logits.numel()) * sizeof(double)};
}

OpPlan ProjectResidual::plan(const In& in) const {
  require_matrix(in.weight, in.h.cols(), name, "weight");
  const int64_t rows = in.h.rows(), out = in.weight.dim(0);
  require(in.scale.numel() == out, name, "scale must have one number per output");
  if (in.x) require(in.x.rows() == rows && in.x.cols() == out, name, "x must be (M, N) but is " + in.x.spec.shape.text());
  return {.out = {like(in.h, {rows, out})},
          .backward_workspace = 2 * bytes_of(in.h, in.weight.numel()),
          .flops = product_flops(rows, out, in.h.cols())};
}

OpPlan Mlp::plan(const In& in) const {
  const int64_t rows = in.m.rows(), width = in.m.cols();
  require_matrix(in.up, width, name, "up");
  const int64_t hidden = in.up.dim(0);
  require_matrix(in.down, hidden, name, "down");
  require(in.down.dim(0) == width && in.scale.numel() == width, name, "down must be (D, F) and scale (D)");
  if (in.x) require(in.x.spec == in.m.spec, name, "x must match m");
  const Spec hidden_spec = like(in.m, {rows, hidden});
  return {.out = {in.m.spec},
          .saved = {hidden_spec, hidden_spec},
          .backward_workspace = bytes_of(in.m, 2 * width * hidden + rows * hidden),
          .flops = 2 * product_flops(rows, hidden, width)};
}

OpPlan SoftcapCrossEntropy::plan(const In& in) const {
  require_matrix(in.table, in.x.cols(), name, "table");
  const int64_t rows = in.x.rows(), vocab = in.table.dim(0);
  require(in.targets.spec.dtype == DType::i32 && in.targets.numel() == rows, name, "targets must be i32 (M)");
  require(cap > 0, name, "cap must be positive");
  return {.out = {like(in.x, {1}), like(in.x, {rows})},
          .saved = {like(in.x, {rows, vocab}), like(in.x, {rows})},
          .backward_workspace = bytes_of(in.x, rows * vocab),
          .flops = product_flops(rows, vocab, in.x.cols())};
}

}  // namespace fairway
