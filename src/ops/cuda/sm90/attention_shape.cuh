// What the kernels of sm90/ share: where rows and statistics of heads lie, and the maps that copy tiles of them.
#pragma once

#include <algorithm>

#include "ops/attention.h"
#include "ops/cuda/context.h"
#include "ops/cuda/sm90/warpgroup.cuh"

namespace fairway::cuda {

struct HeadShape {
  int length, heads, kv_heads;  // packed documents are one sequence of all rows
  float scale;
  const int32_t* start;  // of each row's document, or null
  int row_length;        // of the batch; documents do not go on from row to row
  // Place of a row and head in (B, H, T).
  __host__ __device__ int64_t statistic(int row, int head) const {
    const int sequence = row / length;
    return (int64_t{sequence} * heads + head) * length + (row - sequence * length);
  }
};

// A block: one warpgroup that copies, two that multiply, each owning one of two tiles of rows. In a turn it takes two tiles of
// the other side, which wait in stages.
inline constexpr int kConsumers = 2, kBlockThreads = 128 * (kConsumers + 1);
inline constexpr int kPair = 2 * sm90::kTile;  // rows that a block owns, and rows that a turn takes

// Tiles of the other side in stages, turn after turn through all that a block does.
template <int kStages>
struct Pipe {
  sm90::Barrier full[kStages], empty[kStages];
  __device__ void init() {
    for (int s = 0; s < kStages; ++s) {
      full[s].init(1);
      empty[s].init(128 * kConsumers);
    }
  }
  __device__ int to_fill(int turn, uint32_t bytes) {
    const int stage = turn % kStages;
    if (turn >= kStages) empty[stage].wait(static_cast<uint32_t>(turn / kStages - 1) % 2);
    full[stage].expect(bytes);
    return stage;
  }
  __device__ int filled(int turn) {
    full[turn % kStages].wait(static_cast<uint32_t>(turn / kStages) % 2);
    return turn % kStages;
  }
  // Every thread for itself: lanes read statistics, and ptxas drops a __syncwarp that would let one speak for the others.
  __device__ void release(int turn) { empty[turn % kStages].arrive(); }
};

// What a block does next, in places that the copying thread fills ahead of the others. Blocks stay and take one item after the
// other from a counter in global memory, so that the end of one and the beginning of the next overlap.
template <int kPlaces>
struct Agenda {
  static constexpr int kEnd = -1;  // instead of an item
  sm90::Barrier full[kPlaces], empty[kPlaces];
  int item[kPlaces];
  __device__ void init(uint32_t readers) {
    for (int p = 0; p < kPlaces; ++p) {
      full[p].init(1);
      empty[p].init(readers);
    }
  }
  // The block's n-th item, told to the others when the `bytes` of its tiles have landed at the barrier that is returned.
  __device__ sm90::Barrier& announce(int n, int what, uint32_t bytes) {
    write(n, what);
    full[n % kPlaces].expect(bytes);
    return full[n % kPlaces];
  }
  __device__ void announce_end(int n) {
    write(n, kEnd);
    full[n % kPlaces].arrive();
  }
  __device__ int read(int n) {
    full[n % kPlaces].wait(static_cast<uint32_t>(n / kPlaces) % 2);
    return item[n % kPlaces];
  }
  __device__ int again(int n) const { return *const_cast<const volatile int*>(&item[n % kPlaces]); }  // before its release
  __device__ void release(int n) { empty[n % kPlaces].arrive(); }

 private:
  __device__ void write(int n, int what) {
    if (n >= kPlaces) empty[n % kPlaces].wait(static_cast<uint32_t>(n / kPlaces - 1) % 2);
    item[n % kPlaces] = what;
  }
};

__device__ inline void load_pair(sm90::Tile (&to)[2], const CUtensorMap& map, int column, int row, sm90::Barrier& landed) {
  sm90::load_tile(to[0], map, column, row, landed);
  sm90::load_tile(to[1], map, column, row + sm90::kTile, landed);
}

HeadShape head_shape(const Attention& op, const Attention::In& in);
CUtensorMap tile_map(const Tensor& rows);  // tiles of 64 × 64 of a bf16 matrix

// A block's shared memory. It begins where swizzled tiles may lie as long as a kernel has no other.
template <class Shared>
__device__ Shared& tiles_of(std::byte* memory) {
  if (sm90::shared_address(memory) % alignof(sm90::Tile) != 0) __trap();
  return *reinterpret_cast<Shared*>(memory);
}

template <class Shared, class Kernel, class... Args>
void launch_tiles(Scratch& scratch, Kernel* kernel, dim3 grid, const Args&... args) {
  constexpr size_t kBytes = sizeof(Shared);
  static_assert(kBytes <= 232448, "more than a block may have");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "cudaFuncSetAttribute");
  kernel<<<grid, kBlockThreads, kBytes, scratch.stream()>>>(args...);
}
// Blocks that stay: one a processor, or one an item.
inline dim3 staying_blocks(const Context& context, int items) {
  return dim3(static_cast<unsigned>(std::min(items, context.processors())));
}

}  // namespace fairway::cuda
