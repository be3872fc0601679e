// Shape rules of the ops that work row by row.
#include "ops/all_ops.h"
#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {
namespace {

void require_same(const Tensor& a, const Tensor& b, std::string_view op, const char* what) {
  require(a.spec == b.spec, op, std::string(what) + " must match: " + a.spec.shape.text() + " and " + b.spec.shape.text());
}

void require_numel(const Tensor& x, int64_t count, std::string_view op, const char* what) {
  require(x.numel() == count, op,
          std::string(what) + " must have " + std::to_string(count) + " elements but is " + x.spec.shape.text());
}

void require_indices(const Tensor& x, int64_t count, std::string_view op, const char* what) {
  require(x.spec.dtype == DType::i32, op, std::string(what) + " must be i32");
  require_numel(x, count, op, what);
}

}  // namespace

OpPlan Embed::plan(const In& in) const {
  require(in.tokens.spec.dtype == DType::i32, name, "tokens must be i32");
  require(in.table.spec.shape.rank == 2, name, "table must be (V, D) but is " + in.table.spec.shape.text());
  return {.out = {like(in.table, {in.tokens.numel(), in.table.dim(1)})}};
}

OpPlan Add::plan(const In& in) const {
  require_same(in.a, in.b, name, "a and b");
  return {.out = {in.a.spec}};
}

OpPlan SmearGate::plan(const In& in) const {
  require_numel(in.gate, in.u.cols(), name, "gate");
  require(row_length > 0 && in.u.rows() % row_length == 0, name, "rows must be whole sequences");
  return {.out = {in.u.spec}, .backward_workspace = partials_bytes(in.u.cols())};
}

OpPlan SmearGateInput::plan(const In& in) const {
  require_indices(in.tokens, in.e.rows(), name, "tokens");
  require(in.weight.numel() <= in.e.cols(), name, "weight must not be wider than the rows");
  require_numel(in.lambda, 1, name, "lambda");
  require(row_length > 0 && in.e.rows() % row_length == 0, name, "rows must be whole sequences");
  return {.out = {in.e.spec}, .backward_workspace = partials_bytes(in.weight.numel() + 1)};
}

OpPlan RmsNorm::plan(const In& in) const { return {.out = {in.x.spec}, .saved = {like(in.x, {in.x.rows()})}}; }

OpPlan MixNorm::plan(const In& in) const {
  require_same(in.x, in.x0, name, "x and x0");
  require_numel(in.mix, 2 * in.x.cols(), name, "mix");
  return {.out = {in.x.spec, in.x.spec},
          .saved = {like(in.x, {in.x.rows()})},
          .backward_workspace = partials_bytes(2 * in.x.cols())};
}

OpPlan ValueMix::plan(const In& in) const {
  require_same(in.v, in.embed, name, "v and embed");
  require_numel(in.scale, 1, name, "scale");
  return {.out = {in.v.spec}, .backward_workspace = partials_bytes(1)};
}

OpPlan QkNormRope::plan(const In& in) const {
  const int64_t rows = in.q.rows();
  require(head_dim > 0 && in.q.cols() % head_dim == 0 && in.k.cols() % head_dim == 0, name, "q and k must hold whole heads");
  require(in.k.rows() == rows, name, "q and k must have the same rows");
  const int64_t heads = in.q.cols() / head_dim;
  require_numel(in.gain, heads, name, "gain");
  require(in.rope.spec.shape.rank == 2 && in.rope.dim(0) >= row_length && row_length > 0 && rows % row_length == 0, name,
          "rope must cover every position of a sequence");
  require(in.rope.dim(1) % 2 == 0 && in.rope.dim(1) <= head_dim, name, "rotated dims must be even and within a head");
  return {.out = {in.q.spec, in.k.spec},
          .saved = {like(in.q, {rows, heads}), like(in.q, {rows, in.k.cols() / head_dim})},
          .backward_workspace = partials_bytes(heads)};
}

OpPlan Xsa::plan(const In& in) const {
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, name, "kv_heads must divide heads");
  require(in.y.cols() % heads == 0 && in.y.cols() / heads * kv_heads == in.v.cols() && in.y.rows() == in.v.rows(), name,
          "y and v must have the same rows and head size");
  return {.out = {in.y.spec}, .saved = {like(in.y, {in.y.rows(), heads})}};
}

OpPlan AttnGate::plan(const In& in) const {
  require(heads > 0 && in.y.cols() % heads == 0 && in.a.rows() == in.y.rows(), name,
          "a and y must have the same rows, y whole heads");
  require(in.gate.spec.shape.rank == 2 && in.gate.dim(0) == heads && in.gate.dim(1) <= in.a.cols(), name,
          "gate must be (H, W) with W within the rows of a");
  return {
      .out = {in.y.spec}, .saved = {like(in.y, {in.y.rows(), heads})}, .backward_workspace = partials_bytes(in.gate.numel())};
}

OpPlan Skip::plan(const In& in) const {
  require_same(in.x, in.skip, name, "x and skip");
  require_numel(in.weight, in.x.cols(), name, "weight");
  if (in.gate) require_numel(in.gate, in.x.cols(), name, "gate");
  return {.out = {in.x.spec}, .backward_workspace = partials_bytes(2 * in.x.cols())};
}

OpPlan LaneMix::plan(const In& in) const {
  require_same(in.lane0, in.lane1, name, "the lanes");
  require_same(in.lane0, in.attn, name, "lane and attn");
  require_same(in.lane0, in.mlp, name, "lane and mlp");
  require_numel(in.resid, 2, name, "resid");
  require_numel(in.post, 4, name, "post");
  return {.out = {in.lane0.spec, in.lane0.spec}, .backward_workspace = partials_bytes(6)};
}

OpPlan LaneMerge::plan(const In& in) const {
  require_same(in.lane0, in.lane1, name, "the lanes");
  return {.out = {in.lane0.spec}};
}

OpPlan FakeQuant::plan(const In& in) const {
  require(levels > 0, name, "levels must be positive");
  require(deviations >= 0 && scale_floor >= 0, name, "deviations and scale_floor must not be negative");
  return {.out = {in.weight.spec}};
}

}  // namespace fairway
