#include "ops/cpu/product.h"

#include "base/error.h"

namespace fairway::cpu {

void product(Queue& queue, const GemmArgs& args) {
  if (args.m == 0 || args.n == 0) return;
  if (args.k == 0) {
    FAIRWAY_ASSERT(args.epilogue.kind == EpilogueKind::none, "a product over nothing has no epilogue");
    for (int64_t row = 0; row < args.m && !args.accumulate; ++row) std::fill_n(args.c + row * args.ldc, args.n, 0.0f);
    return;
  }
  gemm(queue.pool(), args, queue.scratch(gemm_workspace(queue.pool().threads())));
}

GemmArgs times_transposed(const Tensor& x, const Tensor& weight, const Tensor& y) {
  const int64_t n = weight.dim(0), k = weight.dim(1);
  return {.layout = ProductLayout::nt,
          .m = x.rows(),
          .n = n,
          .k = k,
          .a = x.as<float>(),
          .lda = k,
          .b = weight.as<float>(),
          .ldb = k,
          .c = y.as<float>(),
          .ldc = n};
}

GemmArgs times_weight(const Tensor& g, const float* weight, const Tensor& dx) {
  const int64_t n = dx.cols(), k = g.cols();
  return {.layout = ProductLayout::nn,
          .m = g.rows(),
          .n = n,
          .k = k,
          .a = g.as<float>(),
          .lda = k,
          .b = weight,
          .ldb = n,
          .c = dx.as<float>(),
          .ldc = n,
          .accumulate = dx.accumulate};
}

GemmArgs weight_gradient(const Tensor& g, const Tensor& x, float* gradient, bool accumulate) {
  return {.layout = ProductLayout::tn,
          .m = g.cols(),
          .n = x.cols(),
          .k = g.rows(),
          .a = g.as<float>(),
          .lda = g.cols(),
          .b = x.as<float>(),
          .ldb = x.cols(),
          .c = gradient,
          .ldc = x.cols(),
          .accumulate = accumulate};
}

void pass_gradient(Queue& queue, const Tensor& g, const Tensor& dx) {
  const UpdateKernels& update = kernels().update;
  const float* from = g.as<float>();
  float* to = dx.as<float>();
  for_elements(queue, g.numel(), [&](RowRange range) { update.blend(dx.accumulate ? 1.0f : 0.0f, 1.0f, range, to, from); });
}

void scaled_weight_gradients(Queue& queue, const ScaledWeight& args) {
  const int64_t rows = args.weight.dim(0), columns = args.weight.dim(1);
  const UpdateKernels& update = kernels().update;
  const float *weight = args.weight.as<float>(), *scale = args.scale.as<float>();
  for_rows(queue, rows, 4 * columns, [&](RowRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      const ScaledRow row{.weight = weight + i * columns,
                          .product = args.product ? args.product + i * columns : nullptr,
                          .gradient = args.dweight ? args.dweight.as<float>() + i * columns : nullptr,
                          .add = args.dweight.accumulate,
                          .scaled = args.scaled ? args.scaled + i * columns : nullptr};
      const double along = update.scaled_row(row, scale[i], columns);
      if (args.dscale) put_gradient(args.dscale, i, along);
    }
  });
}

Epilogue residual_epilogue(const Tensor& x, const Tensor& scale, int64_t columns) {
  return {.kind = EpilogueKind::scale_residual,
          .scale = scale ? scale.as<float>() : nullptr,
          .other = x ? x.as<float>() : nullptr,
          .ld_other = columns};
}

}  // namespace fairway::cpu
