// Products of a warp on the tensor cores of every GPU from Ampere on, in PTX: fragments of bf16 read from swizzled tiles in
// shared memory (ldmatrix), sums of 16 × 8 in float (mma.sync), and rows copied there beside the arithmetic (cp.async).
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace fairway::cuda::warp {

inline constexpr int kHead = 64;           // elements of a row, 128 bytes
inline constexpr int kChunks = kHead / 8;  // of 16 bytes

// Rows of 64 bf16. Chunk c of row r lies at c ^ (r % 8), so that eight rows of one chunk are in different banks.
template <int Rows>
struct alignas(128) Tile {
  __nv_bfloat16 at[Rows * kHead];
  __device__ static int place(int row, int chunk) { return row * kHead + ((chunk ^ (row % 8)) * 8); }
};

// 16 × 16 of A: rows r and r+8 of a lane, columns 0 … 7 and 8 … 15. 16 × 8 of B is two of its registers.
using Fragment = uint32_t[4];
// 16 × 8: two neighbours of row lane/4, two of row lane/4 + 8, from column 2·(lane%4) on.
using Sum = float[4];

__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ inline void load_matrices(Fragment& to, const __nv_bfloat16* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}
__device__ inline void load_transposed(Fragment& to, const __nv_bfloat16* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}

// A: rows row … row+15, columns 16·step … of the tile.
template <int Rows>
__device__ void load_rows(Fragment& to, const Tile<Rows>& tile, int row, int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices(to, tile.at + Tile<Rows>::place(row + lane % 16, 2 * step + lane / 16));
}
// B of a product with the tile's transpose: its rows row … row+15 are columns of the result; to[0], to[1] are of the first
// eight.
template <int Rows>
__device__ void load_columns(Fragment& to, const Tile<Rows>& tile, int row, int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices(to, tile.at + Tile<Rows>::place(row + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
}
// B of a product with the tile: sums over its rows row … row+15, for columns 16·step …
template <int Rows>
__device__ void load_terms(Fragment& to, const Tile<Rows>& tile, int row, int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_transposed(to, tile.at + Tile<Rows>::place(row + lane % 16, 2 * step + lane / 16));
}

__device__ inline void multiply_add(Sum& sum, const Fragment& a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline uint32_t round_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
// Two neighbouring sums of 16 × 8, rounded, are an A of 16 × 16.
__device__ inline void round_sums(Fragment& to, const Sum& left, const Sum& right) {
  to[0] = round_pair(left[0], left[1]);
  to[1] = round_pair(left[2], left[3]);
  to[2] = round_pair(right[0], right[1]);
  to[3] = round_pair(right[2], right[3]);
}

__device__ inline float exp2_fast(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

// Sixteen or eight bytes, or zeros where `inside` does not hold; they land when wait_copies says so.
__device__ inline void copy_chunk(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0)
               : "memory");
}
__device__ inline void copy_eight(void* to, const void* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(to)), "l"(from), "r"(inside ? 8 : 0)
               : "memory");
}
// Rows first … first+Rows−1 of a matrix, `from` being its row 0; those at `rows` and behind are zeros. Every thread of the
// block.
template <int Rows, int Threads>
__device__ void copy_rows(Tile<Rows>& to, const __nv_bfloat16* from, int64_t pitch, int first, int rows) {
  static_assert(Rows * kChunks % Threads == 0);
#pragma unroll
  for (int i = 0; i < Rows * kChunks / Threads; ++i) {
    const int item = static_cast<int>(threadIdx.x) + i * Threads, row = item / kChunks, chunk = item % kChunks;
    const bool inside = first + row < rows;
    copy_chunk(to.at + Tile<Rows>::place(row, chunk), from + (inside ? int64_t{first + row} * pitch : 0) + chunk * 8, inside);
  }
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All but the newest `Newer` groups have landed, for this thread.
template <int Newer>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Newer) : "memory");
}

}  // namespace fairway::cuda::warp
