// What blocks of a cluster do together, in PTX: copies that land in all of them, and barriers of one that another arrives at.
#pragma once

#include "ops/cuda/sm90/warpgroup.cuh"

namespace fairway::cuda::sm90 {

__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// At the barrier that lies where `barrier` does in block `rank` of the cluster. Publishes no writes to the cluster, and need
// not: it tells that wgmma has read a stage.
__device__ inline void arrive_at(const Barrier& barrier, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

// The tile at (column, row) of a matrix, into the same place of every block named in `blocks`; each one's barrier counts it.
__device__ inline void spread_tile(Tile& to, const CUtensorMap& map, int column, int row, Barrier& landed, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], "
      "[%2], %5;" ::"r"(shared_address(&to)),
      "l"(&map), "r"(shared_address(&landed)), "r"(column), "r"(row), "h"(blocks)
      : "memory");
}

// A box at (x, y, z) of a tensor of three axes.
__device__ inline void load_box(void* to, const CUtensorMap& map, int x, int y, int z, Barrier& landed) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
          shared_address(to)),
      "l"(&map), "r"(shared_address(&landed)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

}  // namespace fairway::cuda::sm90
