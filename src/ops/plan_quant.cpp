// Shape rules of the ops that quantizing is made of.
#include "ops/all_ops.h"

namespace fairway {
namespace {

void require_square(const Tensor& matrix, int64_t side, std::string_view op, const char* what) {
  require(matrix.spec.shape.rank == 2 && matrix.dim(0) == side && matrix.dim(1) == side, op,
          std::string(what) + " must be (" + std::to_string(side) + ", " + std::to_string(side) + ") but is " +
              matrix.spec.shape.text());
}

void require_doubles(const Tensor& tensor, int64_t count, std::string_view op, const char* what) {
  require(tensor.spec.dtype == DType::f64 && tensor.numel() == count, op,
          std::string(what) + " must be f64 with " + std::to_string(count) + " elements but is " + tensor.spec.shape.text());
}

}  // namespace

OpPlan HessianAccumulate::plan(const In& in) const {
  const int64_t columns = in.rows.cols();
  require(in.rows.spec.shape.rank == 2, name, "rows must be (N, C) but are " + in.rows.spec.shape.text());
  require_square(in.hessian, columns, name, "hessian");
  require_doubles(in.hessian, columns * columns, name, "hessian");
  const auto side = static_cast<double>(columns);
  return {.forward_workspace = static_cast<size_t>(kBlock * columns) * sizeof(float),
          .flops = static_cast<double>(in.rows.dim(0)) * side * (side + 1)};
}

OpPlan CholeskyInverse::plan(const In& in) const {
  const int64_t side = in.matrix.cols();
  require_square(in.matrix, side, name, "matrix");
  require_doubles(in.matrix, side * side, name, "matrix");
  require_square(in.factor, side, name, "factor");
  require_doubles(in.status, 1, name, "status");
  const auto n = static_cast<double>(side);
  return {.forward_workspace = static_cast<size_t>(2 * side * side) * sizeof(double), .flops = 2.0 / 3.0 * n * n * n};
}

OpPlan GptqBlock::plan(const In& in) const {
  require(in.work.spec.shape.rank == 2, name, "work must be (R, C) but is " + in.work.spec.shape.text());
  const int64_t rows = in.work.dim(0), columns = in.work.dim(1);
  require(begin >= 0 && begin < end && end <= columns, name,
          "the block [" + std::to_string(begin) + ", " + std::to_string(end) + ") must lie in " + in.work.spec.shape.text());
  require(levels > 0 && levels <= 127, name, "levels must be 1 to 127");
  require_square(in.factor, columns, name, "factor");
  require(in.scale.numel() == rows, name, "scale must have one element per row");
  require(in.error.spec.shape.rank == 2 && in.error.dim(0) == rows && in.error.dim(1) >= end - begin, name,
          "error must be (R, at least the block) but is " + in.error.spec.shape.text());
  require_doubles(in.loss, rows, name, "loss");
  const auto r = static_cast<double>(rows), block = static_cast<double>(end - begin);
  return {.flops = r * block * (block + 2 * static_cast<double>(columns - end))};
}

}  // namespace fairway
