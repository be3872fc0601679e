#include "ops/softcap_cross_entropy.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan SoftcapCrossEntropy::plan(const In& in) const {
  require_matrix(in.table, in.x.cols(), name, "table");
  const int64_t rows = in.x.rows(), vocab = in.table.dim(0);
  require(in.targets.spec.dtype == DType::i32 && in.targets.numel() == rows, name, "targets must be i32 (M)");
  if (in.addition)
    require(in.addition.rows() == rows && in.addition.cols() == vocab, name,
            "addition must be (M, V) but is " + in.addition.spec.shape.text());
  if (in.expected)
    require(in.expected.rows() == rows && in.expected.cols() == vocab, name,
            "expected must be (M, V) but is " + in.expected.spec.shape.text());
  require(cap > 0, name, "cap must be positive");
  return {.out = {like(in.x, {1}), like(in.x, {rows})},
          .saved = {like(in.x, {rows, vocab}), like(in.x, {rows})},
          .backward_workspace = bytes_of(in.x, rows * vocab),
          .flops = product_flops(rows, vocab, in.x.cols())};
}

}  // namespace fairway
