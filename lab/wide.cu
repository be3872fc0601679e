// A product of long sums, 98,304 rows × 2048 → 512, that ends in what comes before the MLP's norm: out += dpre·Up −
// m⊙coefficient. A block makes 128 rows of 256 columns, each of its two warpgroups 64 rows of them; rows and weight pass by in
// stages. Two blocks of a cluster stand one below the other and share the weight. What the product is added to is loaded before
// it begins. Beside it cuBLASLt's plain product and the pass that it would replace, in turns in one run; results are checked
// first.
//   lab/build wide && build/lab/wide
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "lab/lab.cuh"
#include "ops/cuda/cuda.h"
#include "ops/cuda/gemm.h"
#include "ops/cuda/sm90/epilogues.cuh"

using namespace fairway;
using namespace fairway::cuda;
using namespace fairway::cuda::sm90;

namespace {

// 64 rows by 256 columns.
using WidestAccumulator = float[128];
__device__ inline void wgmma_step(WidestAccumulator& d, uint64_t a, uint64_t b, int keep) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, keep, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
        "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
        "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]),
        "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]),
        "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]),
        "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]),
        "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]),
        "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]),
        "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]),
        "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),
        "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]),
        "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b), "r"(keep));
}

inline constexpr int kWideStages = 4, kWideColumns = 4 * kTile, kWideRows = 2 * kTile;

// Where the weight's row of an output column belongs: columns 32g + 8q + 2j + a become rows 32g + 8j + 2q + a.
__host__ __device__ constexpr int shuffled_row(int column) {
  return column / 32 * 32 + column / 2 % 4 * 8 + column / 8 % 4 * 2 + column % 2;
}

struct WideShared {
  Tile rows[kWideStages][2], weight[kWideStages][4];
  Barrier full[kWideStages], empty[kWideStages];
};

struct WideMaps {
  CUtensorMap rows, weight;  // (M, K) and (N, K), tiles of 64 × 64
};

// Outputs of 256 × 256, which clusters take in turns: all strips of the same rows at about the same time.
struct WideDivision {
  int strips, items, clusters, blocks;  // across, in all; of the device; of 64 along the sum
};

// A thread's elements: 16g + 4j + 2b + a is row `row` + 8b, column `column` + 32g + 2j + a.
struct WidePlace {
  int row, column;
};
__device__ inline float& element(WidestAccumulator& sums, int b, int g, int i) {
  return sums[16 * g + 4 * (i / 2) + 2 * b + i % 2];
}

template <int Cluster>
__device__ void copy_wide(WideShared& shared, const WideMaps& maps, const WideDivision& division, int cluster, int rank) {
  uint32_t turn = 0;
  for (int item = cluster; item < division.items; item += division.clusters) {
    const int row = (item / division.strips * Cluster + rank) * kWideRows, column = item % division.strips * kWideColumns;
#pragma unroll 1
    for (int k = 0; k < division.blocks; ++k, ++turn) {
      const uint32_t stage = turn % kWideStages;
      if (turn >= kWideStages) shared.empty[stage].wait((turn / kWideStages - 1) % 2);
      shared.full[stage].expect(6 * kTileBytes);
      for (int i = 0; i < 2; ++i) load_tile(shared.rows[stage][i], maps.rows, k * kTile, row + i * kTile, shared.full[stage]);
      if constexpr (Cluster == 1) {
        for (int i = 0; i < 4; ++i)
          load_tile(shared.weight[stage][i], maps.weight, k * kTile, column + i * kTile, shared.full[stage]);
      } else {
        for (int i = 2 * rank; i < 2 * rank + 2; ++i)
          spread_tile(shared.weight[stage][i], maps.weight, k * kTile, column + i * kTile, shared.full[stage], 3);
      }
    }
  }
}

// Adds the products of an item to sums; the last ones are still on their way at the end. late() is called a few turns before.
template <int Cluster, class Late>
__device__ void multiply_wide(WidestAccumulator& sums, WideShared& shared, int blocks, uint32_t turn, int mine, Late&& late) {
  constexpr uint64_t kStep = 32 >> 4;  // bytes to the next 16 of the sum
  constexpr int kAhead = 8;            // turns, about 5 µs
#pragma unroll 1
  for (int k = 0; k < blocks; ++k, ++turn) {
    const uint32_t stage = turn % kWideStages;
    shared.full[stage].wait(turn / kWideStages % 2);
    const uint64_t first = describe(shared.rows[stage][mine]), second = describe(shared.weight[stage][0]);
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < 4; ++s) wgmma_step(sums, first + s * kStep, second + s * kStep, 1);
    wgmma_commit();
    if (k == max(blocks - kAhead, 0)) late();
    wgmma_wait<1>();
    if (k > 0) release<Cluster>(shared.empty[(turn - 1) % kWideStages]);
  }
}

// An epilogue has prepare(WidePlace), called before the product begins, fetch(prepared, WidePlace), whose result arrives while
// the last products do, and finish(sums, prepared, fetched, WidePlace).
template <class Epilogue, int Cluster>
__global__ void __launch_bounds__(kProductThreads, 1)
    wide_product_kernel(const __grid_constant__ WideMaps maps, const WideDivision division, const Epilogue epilogue) {
  extern __shared__ std::byte memory[];
  auto& shared = *reinterpret_cast<WideShared*>((reinterpret_cast<uintptr_t>(memory) + 1023) / 1024 * 1024);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kWideStages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(8 * Cluster);  // every warp that multiplies
    }
    publish_barriers();
  }
  __syncthreads();
  if constexpr (Cluster > 1) cluster_sync();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const int cluster = static_cast<int>(blockIdx.x) / Cluster, rank = static_cast<int>(blockIdx.x) % Cluster;
  if (warpgroup == 0) {
    give_registers<40>();
    if (threadIdx.x == 0) copy_wide<Cluster>(shared, maps, division, cluster, rank);
    __syncwarp();
  } else {
    take_registers<232>();
    const int mine = warpgroup - 1, thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const auto place_of = [&](int item) {
      const int row = (item / division.strips * Cluster + rank) * kWideRows + mine * kTile;
      return WidePlace{row + thread / 32 * 16 + lane / 4, item % division.strips * kWideColumns + lane % 4 * 8};
    };
    uint32_t turn = 0;
    for (int item = cluster; item < division.items; item += division.clusters) {
      const WidePlace place = place_of(item);
      WidestAccumulator sums;
      epilogue.begin(sums, place);
      multiply_wide<Cluster>(sums, shared, division.blocks, turn, mine, [&] {
        if (item + division.clusters < division.items) epilogue.announce(place_of(item + division.clusters));
      });
      turn += static_cast<uint32_t>(division.blocks);
      wgmma_wait<0>();
      pin(sums);
      release<Cluster>(shared.empty[(turn - 1) % kWideStages]);
      epilogue.finish(sums, place);
    }
  }
  leave<Cluster>();
}

// out (+)= sums − m⊙coefficient of each row: what a product of a norm's gradient leaves before the norm. What the product is
// added to is there before it begins, so that only stores are left for its end.
struct BeforeNorm {
  Matrix m, out;
  bool add;
  const float* coefficient;  // (rows)

  struct Group {
    Eight m{}, had{};
  };
  // Half of the groups are on their way at once: there are no registers for more.
  __device__ void begin(WidestAccumulator& sums, const WidePlace& place) const {
    Group ahead[8];
    float factor[2] = {};
#pragma unroll
    for (int b = 0; b < 2; ++b)
      if (place.row + 8 * b < m.rows) factor[b] = __ldg(coefficient + place.row + 8 * b);
#pragma unroll
    for (int g = 0; g < 8; ++g) ahead[g] = load(place, 0, g);
#pragma unroll
    for (int b = 0; b < 2; ++b)
#pragma unroll
      for (int g = 0; g < 8; ++g) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t x = ahead[g].m.pair[i], y = ahead[g].had.pair[i];
          element(sums, b, g, 2 * i) = low(y) - factor[b] * low(x);
          element(sums, b, g, 2 * i + 1) = high(y) - factor[b] * high(x);
        }
        if (b == 0) ahead[g] = load(place, 1, g);
      }
  }
  // A warpgroup's 64 rows of 512 bytes are called into L2, half a row a thread.
  __device__ void announce(const WidePlace& place) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, row = place.row / kTile * kTile + thread / 2;
    if (row >= m.rows) return;
    const int64_t at = int64_t{row} * m.width + place.column / kWideColumns * kWideColumns + thread % 2 * (kWideColumns / 2);
    asm volatile("prefetch.global.L2 [%0];\nprefetch.global.L2 [%0 + 128];" ::"l"(m.data + at));
    if (add) asm volatile("prefetch.global.L2 [%0];\nprefetch.global.L2 [%0 + 128];" ::"l"(out.data + at));
  }
  __device__ void finish(WidestAccumulator& sums, const WidePlace& place) const {
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      if (place.row + 8 * b >= out.rows) continue;
#pragma unroll
      for (int g = 0; g < 8; ++g) {
        Eight x;
#pragma unroll
        for (int i = 0; i < 4; ++i) x.pair[i] = pack(element(sums, b, g, 2 * i), element(sums, b, g, 2 * i + 1));
        store_eight(out.data + index_of(place, b, g), x);
      }
    }
  }

 private:
  __device__ int64_t index_of(const WidePlace& place, int b, int g) const {
    return int64_t{place.row + 8 * b} * out.width + place.column + 32 * g;
  }
  __device__ Group load(const WidePlace& place, int b, int g) const {
    if (place.row + 8 * b >= m.rows) return {};
    const int64_t at = index_of(place, b, g);
    return {load_eight(m.data + at), add ? load_eight(out.data + at) : Eight{}};
  }
};

inline CUtensorMap wide_map(const Tensor& t) {
  const int64_t sizes[] = {t.cols(), t.rows()}, box[] = {kTile, kTile}, pitch = pitch_of(t);
  return tensor_map(t.data, sizes, {&pitch, 1}, box);
}

// `weight` (N, K) has its rows shuffled; N is a multiple of 256, K of 64.
template <int Cluster = 2, class Epilogue>
void launch_wide_product(Scratch& scratch, const Tensor& rows, const Tensor& weight, const Epilogue& epilogue) {
  constexpr size_t kBytes = sizeof(WideShared) + 1024;  // room to align
  static_assert(kBytes <= 232448, "more than a block may have");
  const auto kernel = wide_product_kernel<Epilogue, Cluster>;
  const auto strips = static_cast<int>(weight.rows() / kWideColumns);
  const auto down = static_cast<int>((rows.rows() + Cluster * kWideRows - 1) / (Cluster * kWideRows));
  const int clusters = std::min(scratch.context().processors() / Cluster, strips * down);
  const WideDivision division{strips, strips * down, clusters, static_cast<int>(rows.cols() / kTile)};
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "cudaFuncSetAttribute");
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeClusterDimension;
  together.val.clusterDim = {Cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(clusters * Cluster));
  config.blockDim = dim3(kProductThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = scratch.stream();
  config.attrs = &together;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, WideMaps{wide_map(rows), wide_map(weight)}, division, epilogue),
        "a wide product on tensor cores");
}

constexpr int64_t kRows = 98304, kHidden = 2048;

__global__ void fill(int64_t count, uint32_t seed, float size, bf16* out) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    uint32_t x = static_cast<uint32_t>(i) * 2654435761u ^ (seed * 0x9E3779B9u + static_cast<uint32_t>(i >> 32));
    for (int k = 0; k < 3; ++k) x = (x ^ (x >> 15)) * 0x85EBCA6Bu + 0xC2B2AE35u;
    out[i] = __float2bfloat16_rn(size * (static_cast<float>(x >> 8) / 8388608.0f - 1));
  }
}
lab::Array random(lab::Lab& lab, Shape shape, unsigned seed, float size = 1) {
  lab::Array out(shape, DType::bf16);
  cudaDeviceSynchronize();
  fill<<<1024, 256, 0, lab.context.stream()>>>(shape.numel(), seed, size, pointer<bf16>(out.tensor));
  lab.context.wait();
  return out;
}
__global__ void shuffle_transposed(int64_t rows, int64_t cols, const bf16* from, bf16* to) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * cols; i += int64_t{gridDim.x} * blockDim.x)
    to[shuffled_row(static_cast<int>(i % cols)) * rows + i / cols] = from[i];
}

// From zero.
struct Plain {
  Matrix out;
  bool store;
  __device__ void begin(WidestAccumulator& sums, const WidePlace&) const {
#pragma unroll
    for (float& x : sums) x = 0;
  }
  __device__ void announce(const WidePlace&) const {}
  __device__ void finish(WidestAccumulator& sums, const WidePlace& place) const {
    if (store) return BeforeNorm{out, out, false, nullptr}.finish(sums, place);
    float total[8] = {};
#pragma unroll
    for (int i = 0; i < 128; ++i) total[i % 8] += sums[i];
    float all = 0;
    for (float t : total) all += t;
    if (all == 1.2345e30f) *out.data = __float2bfloat16_rn(all);
  }
};

struct Variant {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds{};
};

}  // namespace

int main() {
  lab::Lab lab;
  lab::Array dpre = random(lab, {kRows, kHidden}, 1), up = random(lab, {kHidden, kSum}, 2, 0.05f),
             m = random(lab, {kRows, kSum}, 3), had = random(lab, {kRows, kSum}, 4), plain({kRows, kSum}, DType::bf16),
             out({kRows, kSum}, DType::bf16), weight({kSum, kHidden}, DType::bf16);
  lab::Array rstd({kRows}, DType::f32);
  std::vector<float> ones(kRows, 0.5f);
  rstd.set(ones);
  shuffle_transposed<<<512, 256, 0, lab.context.stream()>>>(kHidden, kSum, pointer<bf16>(up.tensor),
                                                            pointer<bf16>(weight.tensor));
  lab.context.wait();
  std::vector<Variant> all;
  const auto add = [&](const char* name, auto body) {
    all.push_back({name, [&lab, body] {
                     Scratch scratch(&lab.queue);
                     body(scratch);
                   }});
  };
  const RmsNorm norm{.scale = 1};
  add("cuBLASLt", [&](Scratch& s) { multiply(s, ProductLayout::nn, dpre.tensor, up.tensor, plain.tensor); });
  add("rms_norm' added", [&](Scratch&) {
    Tensor into = out.tensor;
    into.accumulate = true;
    backward(norm, {{m.tensor}, {}, {rstd.tensor}, {plain.tensor}, {into}, {}, &lab.queue});
  });
  add("dropped, clusters of 2", [&](Scratch& s) {
    launch_wide_product<2>(s, dpre.tensor, weight.tensor, Plain{matrix(out.tensor), false});
  });
  add("dropped, clusters of 1", [&](Scratch& s) {
    launch_wide_product<1>(s, dpre.tensor, weight.tensor, Plain{matrix(out.tensor), false});
  });
  add("stored, clusters of 2", [&](Scratch& s) {
    launch_wide_product<2>(s, dpre.tensor, weight.tensor, Plain{matrix(out.tensor), true});
  });
  add("stored, clusters of 1", [&](Scratch& s) {
    launch_wide_product<1>(s, dpre.tensor, weight.tensor, Plain{matrix(out.tensor), true});
  });
  add("before norm, 2", [&](Scratch& s) {
    launch_wide_product<2>(s, dpre.tensor, weight.tensor,
                           BeforeNorm{matrix(m.tensor), matrix(out.tensor), true, pointer<float>(rstd.tensor)});
  });
  add("before norm, 1", [&](Scratch& s) {
    launch_wide_product<1>(s, dpre.tensor, weight.tensor,
                           BeforeNorm{matrix(m.tensor), matrix(out.tensor), true, pointer<float>(rstd.tensor)});
  });
  // The check: out = had + plain − m·coefficient.
  all[0].run();
  for (const int which : {6, 7}) {
    cudaMemcpy(out.buffer.data(), had.buffer.data(), out.buffer.bytes(), cudaMemcpyDeviceToDevice);
    all[static_cast<size_t>(which)].run();
    lab.context.wait();
    const auto p = plain.floats(), h = had.floats(), x = m.floats(), have = out.floats();
    double error = 0, power = 0;
    for (size_t i = 0; i < have.size(); ++i) {
      const double want = double(h[i]) + double(p[i]) - 0.5 * double(x[i]);
      error += std::pow(double(have[i]) - want, 2);
      power += want * want;
    }
    std::printf("%s: error %.2e\n", all[static_cast<size_t>(which)].name.c_str(), std::sqrt(error / power));
  }
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int round = -2; round < 7; ++round)
    for (Variant& v : all) {
      v.run();
      cudaEventRecord(begin, lab.context.stream());
      for (int i = 0; i < 12; ++i) v.run();
      cudaEventRecord(end, lab.context.stream());
      cuda::check(cudaEventSynchronize(end), "timing");
      float ms = 0;
      cudaEventElapsedTime(&ms, begin, end);
      if (round >= 0) v.seconds.push_back(ms * 1e-3 / 12);
    }
  for (Variant& v : all) {
    std::sort(v.seconds.begin(), v.seconds.end());
    std::printf("%-26s %7.1f us (%.1f to %.1f)\n", v.name.c_str(), v.seconds[3] * 1e6, v.seconds.front() * 1e6,
                v.seconds.back() * 1e6);
  }
}
