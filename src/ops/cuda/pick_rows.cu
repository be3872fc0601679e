#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/table_rows.h"

namespace fairway::cuda {
namespace {

// A warp takes a row of dx and finds its place among the picked ones, which ascend: nothing is sorted, and each element is a
// sum in one order.
template <class T, int V>
__global__ void add_picked(int64_t height, int64_t width, int picked, const int32_t* rows, Source<T> g, Sink<T> dx) {
  for (int64_t m = warp_index(); m < height; m += int64_t{gridDim.x} * kWarps) {
    int first = 0;
    for (int end = picked; first < end;) {
      const int middle = (first + end) / 2;
      if (rows[middle] < m)
        first = middle + 1;
      else
        end = middle;
    }
    if (dx.add && (first == picked || rows[first] != m)) continue;
    for (int64_t c = lane_id() * V; c < width; c += 32 * V) {
      float total[V] = {};
      for (int i = first; i < picked && rows[i] == m; ++i) {
        float x[V];
        g.load(i * width + c, x);
#pragma unroll
        for (int k = 0; k < V; ++k) total[k] += x[k];
      }
      dx.store(m * width + c, total);
    }
  }
}

}  // namespace

void forward(const PickRows&, const Forward<PickRows>& f) {
  Scratch scratch(f.queue);
  gather_rows(scratch, pointer<int32_t>(f.in.rows), f.in.x, f.out.y, vectors(f, f.in.x.cols()));
}

void backward(const PickRows&, const Backward<PickRows>& b) {
  if (!b.din.x) return;
  Scratch scratch(b.queue);
  const int64_t height = b.din.x.rows(), width = b.din.x.cols();
  with_type(b.din.x, vectors(b, width), [&]<class T, int V>() {
    add_picked<T, V><<<blocks_for(scratch.context(), height, kWarps), kThreads, 0, scratch.stream()>>>(
        height, width, static_cast<int>(b.in.rows.numel()), pointer<int32_t>(b.in.rows), source<T>(b.dout.y), sink<T>(b.din.x));
  });
  check_launch("pick_rows'");
}

}  // namespace fairway::cuda
