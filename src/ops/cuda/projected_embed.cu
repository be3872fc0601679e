#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/gemm.h"
#include "ops/cuda/scaled_weights.h"
#include "ops/cuda/table_rows.h"

namespace fairway::cuda {
namespace {

__global__ void bigram_rows(int64_t count, int64_t row_length, int64_t table_rows, const int32_t* tokens, int32_t* index) {
  for (int64_t m = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; m < count; m += int64_t{gridDim.x} * blockDim.x) {
    index[m] = m % row_length == 0
                   ? static_cast<int32_t>(table_rows - 1)
                   : static_cast<int32_t>(((36313 * int64_t{tokens[m]}) ^ (27191 * int64_t{tokens[m - 1]})) % (table_rows - 1));
  }
}

const int32_t* rows_of(Scratch& scratch, const ProjectedEmbed& op, const ProjectedEmbed::In& in) {
  const auto* tokens = pointer<int32_t>(in.tokens);
  if (op.index == ProjectedEmbed::Index::token) return tokens;
  const int64_t count = in.tokens.numel();
  auto* index = scratch.take<int32_t>(count);
  bigram_rows<<<blocks_for(scratch.context(), count), kThreads, 0, scratch.stream()>>>(count, op.row_length, in.table.dim(0),
                                                                                       tokens, index);
  check_launch("bigram_rows");
  return index;
}

}  // namespace

void forward(const ProjectedEmbed& op, const Forward<ProjectedEmbed>& f) {
  Scratch scratch(f.queue);
  gather_rows(scratch, rows_of(scratch, op, f.in), f.in.table, f.saved.gathered, vectors(f, f.in.table.cols()));
  const Tensor scaled = scratch_tensor(scratch, f.in.proj.spec.shape, f.in.proj.spec.dtype);
  scale_rows(scratch, f.in.proj, f.in.scale, scaled);
  multiply(scratch, ProductLayout::nt, f.saved.gathered, scaled, f.out.y);
}

void backward(const ProjectedEmbed& op, const Backward<ProjectedEmbed>& b) {
  Scratch scratch(b.queue);
  const Tensor gram = scratch_tensor(scratch, b.in.proj.spec.shape, DType::f32);
  multiply(scratch, ProductLayout::tn, b.dout.y, b.saved.gathered, gram);
  scaled_weight_gradients(scratch, gram, b.in.proj, b.in.scale, b.din.proj, b.din.scale);
  if (!b.din.table) return;
  const Tensor scaled = scratch_tensor(scratch, b.in.proj.spec.shape, b.in.proj.spec.dtype);
  scale_rows(scratch, b.in.proj, b.in.scale, scaled);
  const Tensor rows = scratch_tensor(scratch, b.saved.gathered.spec.shape, b.saved.gathered.spec.dtype);
  multiply(scratch, ProductLayout::nn, b.dout.y, scaled, rows);
  scatter_rows(scratch, rows_of(scratch, op, b.in), rows, b.din.table);
}

}  // namespace fairway::cuda
