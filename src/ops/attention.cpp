#include "ops/attention.h"

#include "ops/plan_rules.h"

namespace fairway {

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
  if (in.tiles)
    require(in.segment_start && in.tiles.numel() == SegmentTilesLayout(rows, row_length).words(), name,
            "tiles must be those of segment_start");
  const Spec each_head = like(in.q, {rows, heads});
  if (in.logit) require(in.logit.spec.shape == each_head.shape, name, "logit must be (M, H)");
  // One query's scores in double; then sums of dk and dv beside two such rows, and dy where it is not the result's gradient.
  const auto one_query = static_cast<size_t>(rows) * sizeof(double);
  return {.out = {in.q.spec},
          .saved = {each_head, like(in.q, {shapes_output(in) ? rows : 0, heads})},
          .forward_workspace = one_query,
          .backward_workspace = 2 * static_cast<size_t>(in.k.numel()) * sizeof(double) + 2 * one_query +
                                (shapes_output(in) ? in.q.spec.bytes() : 0),
          .flops = 2.0 * static_cast<double>(rows) * static_cast<double>(row_length) * static_cast<double>(in.q.cols())};
}

}  // namespace fairway
