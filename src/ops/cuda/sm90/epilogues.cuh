// What product_kernel does with its sums: the MLP's activation with the signs of what it was made of, the gradient through it,
// and a sum with rows already there. Signs are 128 bits a thread and tile, element 16g + 4j + 2b + a of half h being bit
// 31 − (8g + 2j + a) of word 2h + b.
#pragma once

#include "ops/cuda/sm90/product.cuh"

namespace fairway::cuda::sm90 {

struct Eight {  // neighbouring elements
  uint32_t pair[4];
};

// Volatile, so that it stays before the wait under whose cover it arrives.
__device__ inline Eight load_eight(const bf16* from) {
  Eight out;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(out.pair[0]), "=r"(out.pair[1]), "=r"(out.pair[2]), "=r"(out.pair[3])
               : "l"(from)
               : "memory");
  return out;
}
__device__ inline void store_eight(bf16* to, const Eight& x) {
  *reinterpret_cast<uint4*>(to) = make_uint4(x.pair[0], x.pair[1], x.pair[2], x.pair[3]);
}
__device__ inline float low(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float high(uint32_t pair) { return __uint_as_float(pair & 0xFFFF0000u); }
__device__ inline float root(float x) {
  float out;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

struct Matrix {
  bf16* data;  // (rows, width)
  int rows, width;
};

// body(to, h, b, g): eight sums of each of a thread's sixteen groups, in the order of memory; rows beyond the last are left
// out.
template <class Body>
__device__ void for_groups(const Matrix& matrix, const Place& place, Body&& body) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int row = place.row + 64 * h + 8 * b;
      if (row >= matrix.rows) continue;
      bf16* const from = matrix.data + int64_t{row} * matrix.width + place.column;
#pragma unroll
      for (int g = 0; g < 4; ++g) body(from + 32 * g, h, b, g);
    }
}
__device__ inline float& element(Sums& sums, int h, int b, int g, int i) {
  return sums[h][16 * g + 4 * (i / 2) + 2 * b + i % 2];
}

struct Fetched {
  Eight at[16];
};
__device__ inline Fetched fetch_groups(const Matrix& matrix, const Place& place) {
  Fetched out{};
  for_groups(matrix, place, [&](const bf16* from, int h, int b, int g) { out.at[8 * h + 4 * b + g] = load_eight(from); });
  return out;
}

// Brings a tile of a matrix into L2, a row a thread.
__device__ inline void prefetch_rows(const Matrix& matrix, const Place& place) {
  const int row = place.row / kSide * kSide + static_cast<int>(threadIdx.x) % 128;
  if (row >= matrix.rows) return;
  const bf16* from = matrix.data + int64_t{row} * matrix.width + place.column / kSide * kSide;
  asm volatile("prefetch.global.L2 [%0];\nprefetch.global.L2 [%0 + 128];" ::"l"(from));
}

struct Nothing {};

// out = sums.
struct Keep {
  Matrix out;
  __device__ void prepare(const Place&) const {}
  __device__ Nothing fetch(const Place&) const { return {}; }
  __device__ void finish(Sums& sums, const Nothing&, const Place& place) const {
    for_groups(out, place, [&](bf16* to, int h, int b, int g) {
      Eight x;
#pragma unroll
      for (int i = 0; i < 4; ++i) x.pair[i] = pack(element(sums, h, b, g, 2 * i), element(sums, h, b, g, 2 * i + 1));
      store_eight(to, x);
    });
  }
};

// out = other + sums.
struct AddTo {
  Matrix other, out;
  __device__ void prepare(const Place& place) const { prefetch_rows(other, place); }
  __device__ Fetched fetch(const Place& place) const { return fetch_groups(other, place); }
  __device__ void finish(Sums& sums, const Fetched& ahead, const Place& place) const {
    for_groups(out, place, [&](bf16* to, int h, int b, int g) {
      const Eight& had = ahead.at[8 * h + 4 * b + g];
      Eight x;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        x.pair[i] =
            pack(low(had.pair[i]) + element(sums, h, b, g, 2 * i), high(had.pair[i]) + element(sums, h, b, g, 2 * i + 1));
      store_eight(to, x);
    });
  }
};

// post = (pre > 0 ? pre : pre/2)².
template <bool Signs>
struct Activate {
  Matrix post;
  uint4* signs;
  __device__ void prepare(const Place&) const {}
  __device__ Nothing fetch(const Place&) const { return {}; }
  __device__ void finish(Sums& sums, const Nothing&, const Place& place) const {
    if constexpr (Signs) {
      uint32_t word[4] = {};
#pragma unroll
      for (int i = 0; i < 128; ++i) {
        uint32_t& w = word[i / 32];
        w = __funnelshift_l(__float_as_uint(element(sums, i / 64, i / 32 % 2, i / 8 % 4, i % 8)), w, 1);
      }
      signs[place.tile * 128 + threadIdx.x % 128] = make_uint4(word[0], word[1], word[2], word[3]);
    }
    for_groups(post, place, [&](bf16* to, int h, int b, int g) {
      Eight x;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float p = element(sums, h, b, g, 2 * i), q = element(sums, h, b, g, 2 * i + 1);
        const float u = fmaxf(p, 0.5f * p), v = fmaxf(q, 0.5f * q);
        x.pair[i] = pack(u * u, v * v);
      }
      store_eight(to, x);
    });
  }
};

// dpre = sums⊙slope, where the slope at pre is 2·√post above zero and −√post below.
struct ScaleBySlope {
  Matrix post, dpre;
  const uint4* signs;
  struct Ahead {
    Fetched post;
    uint32_t sign[4];
  };
  __device__ void prepare(const Place& place) const { prefetch_rows(post, place); }
  __device__ Ahead fetch(const Place& place) const {
    Ahead out{fetch_groups(post, place), {}};
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.sign[0]), "=r"(out.sign[1]), "=r"(out.sign[2]), "=r"(out.sign[3])
                 : "l"(signs + place.tile * 128 + threadIdx.x % 128)
                 : "memory");
    return out;
  }
  __device__ void finish(Sums& sums, const Ahead& ahead, const Place& place) const {
    for_groups(dpre, place, [&](bf16* to, int h, int b, int g) {
      const Eight& had = ahead.post.at[8 * h + 4 * b + g];
      const uint32_t signs_here = ahead.sign[2 * h + b];
      const auto through = [&](float sum, float activation, int i) {
        const float x = sum * root(activation);
        return (signs_here & (0x80000000u >> (8 * g + i))) != 0 ? -x : 2 * x;
      };
      Eight x;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        x.pair[i] = pack(through(element(sums, h, b, g, 2 * i), low(had.pair[i]), 2 * i),
                         through(element(sums, h, b, g, 2 * i + 1), high(had.pair[i]), 2 * i + 1));
      store_eight(to, x);
    });
  }
};

inline Matrix matrix(const Tensor& t) { return {pointer<bf16>(t), static_cast<int>(t.rows()), static_cast<int>(t.cols())}; }

}  // namespace fairway::cuda::sm90
