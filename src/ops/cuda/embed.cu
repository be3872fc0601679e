#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/table_rows.h"

namespace fairway::cuda {

void forward(const Embed&, const Forward<Embed>& f) {
  Scratch scratch(f.queue);
  gather_rows(scratch, pointer<int32_t>(f.in.tokens), f.in.table, f.out.y, vectors(f, f.in.table.cols()));
}

void backward(const Embed&, const Backward<Embed>& b) {
  Scratch scratch(b.queue);
  scatter_rows(scratch, pointer<int32_t>(b.in.tokens), b.dout.y, b.din.table);
}

}  // namespace fairway::cuda
