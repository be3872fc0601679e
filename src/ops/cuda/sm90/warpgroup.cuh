// What Hopper's tensor cores ask for, in PTX: barriers that count bytes, copies of swizzled tiles (TMA), and products of a
// warpgroup (wgmma), A in shared memory or in registers. Tiles are 64 rows of 64 bf16: one row is 128 bytes, one swizzle atom
// wide.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

namespace fairway::cuda::sm90 {

inline constexpr int kTile = 64;                           // rows and columns
inline constexpr uint32_t kTileBytes = kTile * kTile * 2;  // bf16

struct alignas(1024) Tile {
  __nv_bfloat16 at[kTile * kTile];
};

__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

class Barrier {
 public:
  __device__ void init(uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&word_)), "r"(arrivals));
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&word_)) : "memory");
  }
  // Arrives, and lets the phase end only when `bytes` more have landed.
  __device__ void expect(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&word_)), "r"(bytes) : "memory");
  }
  __device__ void wait(uint32_t parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra out;\nbra again;\n"
        "out:\n}" ::"r"(shared_address(&word_)),
        "r"(parity)
        : "memory");
  }

 private:
  uint64_t word_;
};

__device__ inline void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// The tile at (column, row) of a matrix.
__device__ inline void load_tile(Tile& to, const CUtensorMap& map, int column, int row, Barrier& landed) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   shared_address(&to)),
               "l"(&map), "r"(shared_address(&landed)), "r"(column), "r"(row)
               : "memory");
}
__device__ inline void load_bytes(void* to, const void* from, uint32_t bytes, Barrier& landed) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&landed))
      : "memory");
}

// Makes what the threads wrote to shared memory visible to copies and products, which read it by another way.
__device__ inline void publish_to_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Bytes of shared memory to global memory: as they are, or added to the floats that lie there.
__device__ inline void store_bytes(void* to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
__device__ inline void add_floats(float* to, const float* from, uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void wait_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void wait_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// A counter in global memory by which blocks take turns.
__device__ inline void wait_for_count(const int* counter, int count) {
  int seen;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
  } while (seen < count);
}
__device__ inline void count_up(int* counter) {
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(counter) : "memory");
}

template <int Count>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

// Products of 64 rows by 64 or 128 columns in a warpgroup: of thread (warp w, lane l) element 4j + 2b + a is row
// 16w + l/4 + 8b, column 8j + 2(l % 4) + a.
using Accumulator = float[32];
using WideAccumulator = float[64];
// 64 × 64 as the A of products: four steps of 16 columns, laid out as an accumulator's elements 8s … 8s+7 in pairs. Only for
// what is computed anew for every product: ptxas 13.0 lets others overwrite fragments that stay through a loop.
using Fragment = uint32_t[4][4];

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
// Keeps the compiler from moving uses of the accumulator across a wait.
template <int N>
__device__ void pin(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// 128-byte swizzle, atoms of 8 rows 1024 bytes apart.
__device__ inline uint64_t describe(const Tile& tile) {
  return (uint64_t{1} << 62) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 16) | ((shared_address(&tile) & 0x3FFFF) >> 4);
}

__device__ inline void wgmma_step(Accumulator& d, const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
        "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
        "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
// The same with A in shared memory, its columns contiguous (Aᵀ lies there by rows), as B's are.
__device__ inline void wgmma_step(Accumulator& d, uint64_t a, uint64_t b, int keep) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, keep, 1, 1, 1, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
        "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
        "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(keep));
}
__device__ inline void wgmma_step(WideAccumulator& d, uint64_t a, uint64_t b, int keep) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, keep, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
        "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
        "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]),
        "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]),
        "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(keep));
}

// d = A·Bᵀ of a tile and a pair of tiles of shared memory, enqueued and committed.
__device__ inline void multiply_rows(WideAccumulator& d, const Tile& a, const Tile (&b)[2]) {
  const uint64_t first = describe(a), second = describe(b[0]);
  constexpr uint64_t kStep = 32 >> 4;  // bytes to the next 16 columns
  wgmma_fence();
#pragma unroll
  for (int s = 0; s < 4; ++s) wgmma_step(d, first + s * kStep, second + s * kStep, s > 0);
  wgmma_commit();
}

// d += A·B, A in registers; enqueued and committed.
__device__ inline void add_product(Accumulator& d, const Fragment& a, const Tile& b) {
  const uint64_t second = describe(b);
  constexpr uint64_t kStep = 16 * 128 >> 4;  // bytes to the next 16 rows
  wgmma_fence();
#pragma unroll
  for (int s = 0; s < 4; ++s) wgmma_step(d, a[s], second + s * kStep);
  wgmma_commit();
}

// d = Σ over the two tiles Aᵀ·B, all in shared memory; enqueued and committed.
__device__ inline void multiply_columns(Accumulator& d, const Tile& a0, const Tile& a1, const Tile (&b)[2]) {
  constexpr uint64_t kStep = 16 * 128 >> 4;
  wgmma_fence();
#pragma unroll
  for (int s = 0; s < 4; ++s) wgmma_step(d, describe(a0) + s * kStep, describe(b[0]) + s * kStep, s > 0);
#pragma unroll
  for (int s = 0; s < 4; ++s) wgmma_step(d, describe(a1) + s * kStep, describe(b[1]) + s * kStep, 1);
  wgmma_commit();
}

__device__ inline uint32_t pack(float low, float high) {
  uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
// Elements 4j … 4j+3 of an accumulator.
__device__ inline void round_four(Fragment& to, int j, const float (&x)[4]) {
  to[j / 2][j % 2 * 2] = pack(x[0], x[1]);
  to[j / 2][j % 2 * 2 + 1] = pack(x[2], x[3]);
}
// A warpgroup's fragment as rows of a swizzled tile.
__device__ inline void store_fragment(Tile& to, const Fragment& f) {
  const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
  const int row = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane % 8 + matrix % 2 * 8;
  const uint32_t at = shared_address(&to) + static_cast<uint32_t>(row) * 128;
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    const int piece = (2 * s + matrix / 2) ^ (row % 8);
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at + static_cast<uint32_t>(piece) * 16),
        "r"(f[s][0]), "r"(f[s][1]), "r"(f[s][2]), "r"(f[s][3])
        : "memory");
  }
}
// Element i of what was rounded.
__device__ inline float rounded(const Fragment& f, int i) {
  const uint32_t pair = f[i / 8][i / 2 % 4];
  return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xFFFF0000u);
}

__device__ inline float exp2_fast(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

}  // namespace fairway::cuda::sm90
