// D = f(rows·weightᵀ) in bf16 for sums of 512, f applied to registers. A block keeps 128 rows of the weight in shared memory
// and lets tiles of 128 rows pass by: two warpgroups take them in turns, so that one multiplies while the other applies f and
// stores. The blocks of a cluster stand side by side and share what passes: each fetches its part for all. Rows of the weight
// are shuffled on their way in so that a thread gets eight neighbouring columns, which it loads and stores 16 bytes at a time,
// without shared memory.
#pragma once

#include "ops/cuda/elements.cuh"
#include "ops/cuda/sm90/cluster.cuh"
#include "ops/cuda/sm90/tensor_map.h"

namespace fairway::cuda::sm90 {

inline constexpr int kSum = 512, kBlocks = kSum / kTile;  // of the product
inline constexpr int kSide = 2 * kTile;                   // rows and columns of a tile
inline constexpr int kAtom = 8 * kTile * 2;               // bytes of eight rows
inline constexpr int kProductThreads = 3 * 128;           // one warpgroup that copies, two that multiply

// Tiles of an output and who makes them: clusters stay with one strip of columns each; those that are left over when strips
// divide the clusters share the last `tail` tiles of every strip.
struct Division {
  int tiles, strips;   // down, and across in units of a cluster's width
  int groups, others;  // clusters of each strip; clusters left over
  int tail;

  Division(int64_t rows, int64_t columns, int clusters)
      : tiles(static_cast<int>((rows + kSide - 1) / kSide)), strips(static_cast<int>(columns)) {
    groups = clusters / strips;
    others = clusters % strips;
    tail = static_cast<int>(int64_t{tiles} * others / clusters);
    if (tail == 0) others = 0;
  }
  int clusters() const { return groups * strips + others; }

  struct Run {
    int strip, tile, step, count;
  };
  // The n-th run of tiles of a cluster; none when its count is not positive.
  __host__ __device__ Run run(int cluster, int n) const {
    if (cluster < groups * strips) {
      const int first = cluster / strips;
      return {cluster % strips, first, groups, n > 0 ? 0 : (tiles - tail - first + groups - 1) / groups};
    }
    const int other = cluster - groups * strips, all = strips * tail;
    const int begin = other * all / others, end = (other + 1) * all / others;
    const int strip = begin / tail + n, first = max(begin, strip * tail), last = min(end, (strip + 1) * tail);
    return {strip, tiles - tail + first - strip * tail, 1, last - first};
  }
};

// Where a thread's elements of a tile lie: element 16g + 4j + 2b + a of half h is row `row` + 64h + 8b, column
// `column` + 32g + 2j + a.
struct Place {
  int row, column;
  int tile;  // number of the tile in the output, row by row
};
using Sums = float[2][64];

struct ProductMaps {
  CUtensorMap rows;    // (M, 512), tiles of 64 × 64
  CUtensorMap weight;  // (N, 512) as (N/8, 8, 512), boxes of 4 × 2 × 64
};

template <int Stages>
struct ProductShared {
  Tile weight[kBlocks][2], rows[Stages][2];
  Barrier weight_full, weight_empty, full[Stages], empty[Stages];
  Barrier turn[2];  // of each warpgroup that multiplies; without it one would take an older phase of a stage for its own
};

template <int Cluster, int Stages>
__device__ void init_barriers(ProductShared<Stages>& shared) {
  if (threadIdx.x == 0) {
    shared.weight_full.init(1);
    shared.weight_empty.init(8);  // every warp that multiplies
    for (Barrier& turn : shared.turn) turn.init(4);
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(4 * Cluster);  // every warp of the warpgroup whose turn it is
    }
    publish_barriers();
  }
  __syncthreads();
  if constexpr (Cluster > 1) cluster_sync();
}

// Columns 32g + 8q + 2j + a of the output become rows 32g + 8j + 2q + a in shared memory.
template <int Stages>
__device__ void load_weight(ProductShared<Stages>& shared, const CUtensorMap& map, int column) {
  shared.weight_full.expect(sizeof(shared.weight));
  auto* to = reinterpret_cast<std::byte*>(shared.weight);
#pragma unroll 1
  for (int k = 0; k < kBlocks; ++k)
#pragma unroll 1
    for (int i = 0; i < kSide / 8; ++i, to += kAtom)
      load_box(to, map, k * kTile, i % 4 * 2, column / 8 + i / 4 * 4, shared.weight_full);
}

template <int Cluster, int Stages>
__device__ void copy_all(ProductShared<Stages>& shared, const ProductMaps& maps, const Division& division) {
  const uint32_t rank = Cluster > 1 ? cluster_rank() : 0;
  const int cluster = static_cast<int>(blockIdx.x) / Cluster;
  uint32_t turn = 0;
  for (int n = 0;; ++n) {
    const auto run = division.run(cluster, n);
    if (run.count <= 0) return;
    if (n > 0) shared.weight_empty.wait(static_cast<uint32_t>(n - 1) % 2);
    load_weight(shared, maps.weight, (run.strip * Cluster + static_cast<int>(rank)) * kSide);
#pragma unroll 1
    for (int i = 0; i < run.count; ++i) {
      const int row = (run.tile + i * run.step) * kSide;
#pragma unroll 1
      for (int k = 0; k < kBlocks; ++k, ++turn) {
        const uint32_t stage = turn % Stages;
        if (turn >= Stages) shared.empty[stage].wait((turn / Stages - 1) % 2);
        shared.full[stage].expect(2 * kTileBytes);
        if constexpr (Cluster == 1) {
          load_tile(shared.rows[stage][0], maps.rows, k * kTile, row, shared.full[stage]);
          load_tile(shared.rows[stage][1], maps.rows, k * kTile, row + kTile, shared.full[stage]);
        } else {
          const int half = static_cast<int>(rank);
          spread_tile(shared.rows[stage][half], maps.rows, k * kTile, row + half * kTile, shared.full[stage], 3);
        }
      }
    }
  }
}

template <int Cluster>
__device__ void release(Barrier& empty) {
  if (lane_id() != 0) return;
  if constexpr (Cluster == 1) {
    empty.arrive();
  } else {
#pragma unroll
    for (uint32_t rank = 0; rank < Cluster; ++rank) arrive_at(empty, rank);
  }
}

// Nobody does while another may still arrive at its barriers.
template <int Cluster>
__device__ void leave() {
  if constexpr (Cluster > 1) cluster_sync();
}

// Enqueues the products of a tile, whose last ones are still on their way at the end.
template <int Cluster, int Stages>
__device__ void multiply_tile(Sums& sums, ProductShared<Stages>& shared, uint32_t turn, Barrier& next) {
  constexpr uint64_t kStep = 32 >> 4;  // bytes to the next 16 of the sum
#pragma unroll
  for (uint32_t k = 0; k < kBlocks; ++k) {
    const uint32_t stage = (turn + k) % Stages;
    shared.full[stage].wait((turn + k) / Stages % 2);
    const uint64_t second = describe(shared.weight[k][0]);
    wgmma_fence();
#pragma unroll
    for (uint32_t s = 0; s < 4; ++s)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        wgmma_step(sums[h], describe(shared.rows[stage][h]) + s * kStep, second + s * kStep, k + s > 0);
    wgmma_commit();
    if (k > 0) {
      wgmma_wait<1>();
      release<Cluster>(shared.empty[(turn + k - 1) % Stages]);
    }
  }
  if (lane_id() == 0) next.arrive();
}

// An epilogue has prepare(Place), called before the product begins, fetch(Place), whose result arrives while the last products
// do, and finish(Sums&, fetched, Place).
template <class Epilogue, int Cluster, int Stages>
__global__ void __launch_bounds__(kProductThreads, 1)
    product_kernel(const __grid_constant__ ProductMaps maps, const Division division, const Epilogue epilogue) {
  extern __shared__ std::byte memory[];
  auto& shared = *reinterpret_cast<ProductShared<Stages>*>((reinterpret_cast<uintptr_t>(memory) + 1023) / 1024 * 1024);
  init_barriers<Cluster>(shared);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    give_registers<40>();
    if (threadIdx.x == 0) copy_all<Cluster>(shared, maps, division);
    __syncwarp();
    leave<Cluster>();
  } else {
    take_registers<232>();
    const int cluster = static_cast<int>(blockIdx.x) / Cluster, rank = static_cast<int>(blockIdx.x) % Cluster;
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const uint32_t own = static_cast<uint32_t>(warpgroup) - 1;
    uint32_t number = 0;  // of the tile among those of the cluster
    for (int n = 0;; ++n) {
      const auto run = division.run(cluster, n);
      if (run.count <= 0) break;
      shared.weight_full.wait(static_cast<uint32_t>(n) % 2);
      const int strip = run.strip * Cluster + rank;
      for (int i = 0; i < run.count; ++i, ++number) {
        if (number % 2 != own) continue;
        const int tile = run.tile + i * run.step;
        const Place place{tile * kSide + thread / 32 * 16 + lane / 4, strip * kSide + lane % 4 * 8,
                          tile * division.strips * Cluster + strip};
        epilogue.prepare(place);
        if (number > 0) shared.turn[own].wait((number - 1) / 2 % 2);
        Sums sums;
        multiply_tile<Cluster>(sums, shared, number * kBlocks, shared.turn[1 - own]);
        const auto fetched = epilogue.fetch(place);
        wgmma_wait<0>();
        pin(sums[0]);
        pin(sums[1]);
        release<Cluster>(shared.empty[(number * kBlocks + kBlocks - 1) % Stages]);
        epilogue.finish(sums, fetched, place);
      }
      if (lane == 0) shared.weight_empty.arrive();
    }
    leave<Cluster>();
  }
}

inline ProductMaps product_maps(const Tensor& rows, const Tensor& weight) {
  const int64_t m = rows.rows(), n = weight.rows(), pitch = pitch_of(rows);
  const int64_t row_sizes[] = {kSum, m}, row_box[] = {kTile, kTile};
  const int64_t sizes[] = {kSum, 8, n / 8}, pitches[] = {kSum, 8 * kSum}, box[] = {kTile, 2, 4};
  return {tensor_map(rows.data, row_sizes, {&pitch, 1}, row_box), tensor_map(weight.data, sizes, pitches, box)};
}

template <int Cluster = 2, int Stages = 6, class Epilogue>
void launch_product(Scratch& scratch, const Tensor& rows, const Tensor& weight, const Epilogue& epilogue) {
  constexpr size_t kBytes = sizeof(ProductShared<Stages>) + 1024;  // room to align
  const auto kernel = product_kernel<Epilogue, Cluster, Stages>;
  const Division division(rows.rows(), weight.rows() / (kSide * Cluster), scratch.context().processors() / Cluster);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "cudaFuncSetAttribute");
  cudaLaunchAttribute side_by_side{};
  side_by_side.id = cudaLaunchAttributeClusterDimension;
  side_by_side.val.clusterDim = {Cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(division.clusters() * Cluster));
  config.blockDim = dim3(kProductThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = scratch.stream();
  config.attrs = &side_by_side;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, product_maps(rows, weight), division, epilogue), "a product on tensor cores");
}

}  // namespace fairway::cuda::sm90
