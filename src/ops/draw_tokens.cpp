#include "ops/draw_tokens.h"

namespace fairway {

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

}  // namespace fairway
