// Products of 98,304 rows with a sum of 512 and something done to their sums (src/ops/cuda/sm90/product.cuh), by size of
// cluster and number of stages, beside cuBLASLt's plain product in the same run. Everything is checked before it is timed.
//   lab/build mlp && build/lab/mlp [COLUMNS]; build/lab/mlp ROWS COLUMNS only checks. ONLY=26: two blocks a
// cluster, six stages; CLOCK=1 asks for clock and power
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "lab/lab.cuh"
#include "ops/cuda/gemm.h"
#include "ops/cuda/sm90/epilogues.cuh"

using namespace fairway;
using namespace fairway::cuda;
using namespace fairway::cuda::sm90;

namespace {

constexpr int64_t kRows = 98304;

enum class Kind { keep, add, up, gradient };

// Σ(have − want)², Σ want², and how many are further off than bf16 explains.
__global__ void compare(Kind kind, int64_t count, const float* product, const bf16* other, const bf16* have, double* out) {
  double error = 0, power = 0, wrong = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    const float p = product[i], o = other != nullptr ? __bfloat162float(other[i]) : 0, x = __bfloat162float(have[i]);
    float want = p;
    if (kind == Kind::add) want = p + o;
    if (kind == Kind::up) want = (p > 0 ? p : p / 2) * (p > 0 ? p : p / 2);
    if (kind == Kind::gradient) want = p * (o > 0 ? 2 * o : o / 2);
    error += double(x - want) * double(x - want);
    power += double(want) * double(want);
    if (!(fabsf(x - want) <= 0.01f * fabsf(want) + 1e-2f)) wrong += 1;
  }
  atomicAdd(out, error);
  atomicAdd(out + 1, power);
  atomicAdd(out + 2, wrong);
}
// (rows, cols) transposed.
__global__ void transpose(int64_t rows, int64_t cols, const bf16* from, bf16* to) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * cols; i += int64_t{gridDim.x} * blockDim.x)
    to[i % cols * rows + i / cols] = from[i];
}

__global__ void fill_random(int64_t count, uint32_t seed, float size, bf16* out) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    uint32_t x = static_cast<uint32_t>(i) * 2654435761u ^ (seed * 0x9E3779B9u + static_cast<uint32_t>(i >> 32));
    for (int k = 0; k < 3; ++k) x = (x ^ (x >> 15)) * 0x85EBCA6Bu + 0xC2B2AE35u;
    out[i] = __float2bfloat16_rn(size * (static_cast<float>(x >> 8) / 8388608.0f - 1));
  }
}
lab::Array random(lab::Lab& lab, Shape shape, unsigned seed, float size = 1) {
  lab::Array out(shape, DType::bf16);
  cudaDeviceSynchronize();
  fill_random<<<1024, 256, 0, lab.context.stream()>>>(shape.numel(), seed, size, pointer<bf16>(out.tensor));
  lab.context.wait();
  return out;
}

// The product alone.
struct Drop {
  bf16* out;
  __device__ void prepare(const Place&) const {}
  __device__ Nothing fetch(const Place&) const { return {}; }
  __device__ void finish(Sums& sums, const Nothing&, const Place&) const {
    float total[8] = {};
#pragma unroll
    for (int i = 0; i < 128; ++i) total[i % 8] += sums[i / 64][i % 64];
    float all = 0;
    for (float t : total) all += t;
    if (all == 1.2345e30f) *out = __float2bfloat16_rn(all);
  }
};
// The activation is loaded when the product is done, from wherever it is.
struct LateSlope {
  ScaleBySlope slope;
  __device__ void prepare(const Place&) const {}
  __device__ Nothing fetch(const Place&) const { return {}; }
  __device__ void finish(Sums& sums, const Nothing&, const Place& place) const {
    slope.finish(sums, slope.fetch(place), place);
  }
};

struct Sizes {
  lab::Lab& lab;
  int64_t M, N;
  lab::Array m, g, weight, down, down_t, other, out;
  lab::Array post, signs, product, pre, gradient;
  Buffer report{3 * sizeof(double)};
  Sizes(lab::Lab& l, int64_t rows, int64_t n)
      : lab(l),
        M(rows),
        N(n),
        m(random(l, {rows, kSum}, 1)),
        g(random(l, {rows, kSum}, 5)),
        weight(random(l, {n, kSum}, 2, 0.1f)),
        down(random(l, {kSum, n}, 3, 0.1f)),
        down_t({n, kSum}, DType::bf16),
        other(random(l, {rows, n}, 4)),
        out({rows, n}, DType::bf16),
        post({rows, n}, DType::bf16),
        signs({(rows + 127) / 128 * 128, n / 8}, DType::u8),
        product({rows, n}, DType::f32),
        pre({rows, n}, DType::bf16),
        gradient({rows, n}, DType::f32) {
    cudaDeviceSynchronize();  // arrays are cleared on another stream
    transpose<<<512, 256, 0, lab.context.stream()>>>(kSum, N, pointer<bf16>(down.tensor), pointer<bf16>(down_t.tensor));
    Scratch scratch(&lab.queue);
    multiply(scratch, ProductLayout::nt, m.tensor, weight.tensor, product.tensor);
    multiply(scratch, ProductLayout::nt, m.tensor, weight.tensor, pre.tensor);
    multiply(scratch, ProductLayout::nn, g.tensor, down.tensor, gradient.tensor);
    lab.context.wait();
  }
  void check_result(const char* name, Kind kind, const lab::Array& of, const lab::Array* beside, const lab::Array& have) {
    cudaMemsetAsync(report.data(), 0, 24, lab.context.stream());
    compare<<<1024, 256, 0, lab.context.stream()>>>(kind, M * N, pointer<float>(of.tensor),
                                                    beside != nullptr ? pointer<bf16>(beside->tensor) : nullptr,
                                                    pointer<bf16>(have.tensor), reinterpret_cast<double*>(report.data()));
    double r[3];
    lab.context.wait();
    cudaMemcpy(r, report.data(), sizeof(r), cudaMemcpyDeviceToHost);
    const double error = std::sqrt(r[0] / r[1]);
    std::printf("  %-28s error %.2e, far off %.0f%s\n", name, error, r[2], error <= 0.01 ? "" : "  WRONG");
  }
};

const int only = std::getenv("ONLY") != nullptr ? std::atoi(std::getenv("ONLY")) : 0;

struct Variant {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds{};
};

template <int Cluster, int Stages>
void add_variant(Sizes& s, std::vector<Variant>& all) {
  const int code = Cluster * 10 + Stages;
  if (only != 0 && only != code) return;
  const std::string label = std::to_string(code) + " ";
  const auto launch = [&s](const auto& rows, const auto& weight, const auto& epilogue) {
    Scratch scratch(&s.lab.queue);
    launch_product<Cluster, Stages>(scratch, rows.tensor, weight.tensor, epilogue);
  };
  auto* signs = reinterpret_cast<uint4*>(s.signs.buffer.data());
  const ScaleBySlope slope{matrix(s.post.tensor), matrix(s.out.tensor), signs};
  const auto add = [&](const char* name, auto run, Kind kind, const lab::Array& of, const lab::Array* beside, lab::Array& out) {
    cudaMemsetAsync(out.buffer.data(), 0xFF, out.buffer.bytes(), s.lab.context.stream());
    run();
    s.check_result((label + name).c_str(), kind, of, beside, out);
    all.push_back({label + name, run});
  };
  add(
      "product", [=, &s] { launch(s.m, s.weight, Keep{matrix(s.out.tensor)}); }, Kind::keep, s.product, nullptr, s.out);
  add(
      "sum",
      [=, &s] {
        launch(s.m, s.weight, AddTo{matrix(s.other.tensor), matrix(s.out.tensor)});
      },
      Kind::add, s.product, &s.other, s.out);
  add(
      "activation",
      [=, &s] {
        launch(s.m, s.weight, Activate<false>{matrix(s.post.tensor), nullptr});
      },
      Kind::up, s.product, nullptr, s.post);
  add(
      "activation and signs",
      [=, &s] {
        launch(s.m, s.weight, Activate<true>{matrix(s.post.tensor), signs});
      },
      Kind::up, s.product, nullptr, s.post);
  add(
      "gradient of hidden", [=, &s] { launch(s.g, s.down_t, slope); }, Kind::gradient, s.gradient, &s.pre, s.out);
  add(
      "gradient, late", [=, &s] { launch(s.g, s.down_t, LateSlope{slope}); }, Kind::gradient, s.gradient, &s.pre, s.out);
  all.push_back({label + "sums dropped", [=, &s] { launch(s.m, s.weight, Drop{pointer<bf16>(s.out.tensor)}); }});
}

void add_library(Sizes& s, std::vector<Variant>& all) {
  const auto add = [&](const char* name, ProductLayout layout, const lab::Array& a, const lab::Array& b) {
    all.push_back({name, [&s, layout, &a, &b] {
                     Scratch scratch(&s.lab.queue);
                     multiply(scratch, layout, a.tensor, b.tensor, s.out.tensor);
                   }});
  };
  add("cuBLASLt up", ProductLayout::nt, s.m, s.weight);
  add("cuBLASLt gradient", ProductLayout::nn, s.g, s.down);
}

// In turns, since the card's clock depends on what ran before.
void time_all(Sizes& s, std::vector<Variant>& all, int rounds, int calls) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int round = -2; round < rounds; ++round)
    for (Variant& v : all) {
      v.run();
      cudaEventRecord(begin, s.lab.context.stream());
      for (int i = 0; i < calls; ++i) v.run();
      cudaEventRecord(end, s.lab.context.stream());
      cuda::check(cudaEventSynchronize(end), "timing");
      float ms = 0;
      cudaEventElapsedTime(&ms, begin, end);
      if (round >= 0) v.seconds.push_back(ms * 1e-3 / calls);
    }
  const double flops = 2.0 * double(s.M * kSum) * double(s.N);
  for (Variant& v : all) {
    std::sort(v.seconds.begin(), v.seconds.end());
    const double t = v.seconds[v.seconds.size() / 2];
    std::printf("  %-28s %7.1f us (%.1f to %.1f)  %4.0f TFLOP/s\n", v.name.c_str(), t * 1e6, v.seconds.front() * 1e6,
                v.seconds.back() * 1e6, flops / t * 1e-12);
  }
}

}  // namespace

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  const bool timed = count < 3;
  const int64_t rows = timed ? kRows : std::atoll(words[1]), n = count < 2 ? 1792 : std::atoll(words[count - 1]);
  lab::Lab lab;
  std::printf("%lld rows, 512 -> %lld\n", static_cast<long long>(rows), static_cast<long long>(n));
  Sizes s(lab, rows, n);
  std::vector<Variant> all;
  add_library(s, all);
  add_variant<2, 6>(s, all);
  add_variant<2, 4>(s, all);
  add_variant<1, 6>(s, all);
  if (timed) time_all(s, all, 7, 12);
  if (std::getenv("CLOCK") == nullptr) return 0;
  for (size_t i : {0, 3, 5, 6, 8}) {  // what the card does meanwhile
    std::printf("%s\n", all[i].name.c_str());
    for (int k = 0; k < 5000; ++k) all[i].run();
    std::system("nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader");
    lab.context.wait();
  }
}
