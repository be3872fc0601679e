#include "bench/gemm_bench.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/rng.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/peak.h"
#include "ops/cuda/device.h"
#include "ops/cuda/product_time.h"
#include "tensor/arena.h"

namespace fairway::bench {
namespace {

constexpr double kProductErrorLimit = 1e-4;
constexpr double kBf16ProductErrorLimit = 1.0 / 256;  // a result that is rounded to 8 bits
constexpr int kLeastSamples = 5;

struct Case {
  const char* name;
  ProductLayout layout;
  int64_t m, n, k;
};
constexpr Case kCases[] = {
    {"nt", ProductLayout::nt, 4096, 1536, 512}, {"nn", ProductLayout::nn, 4096, 512, 1536},
    {"tn", ProductLayout::tn, 1536, 512, 4096}, {"nt", ProductLayout::nt, 4096, 512, 512},
    {"tn", ProductLayout::tn, 512, 512, 4096},  {"nt", ProductLayout::nt, 2048, 768, 256},
    {"nn", ProductLayout::nn, 2048, 256, 768},  {"tn", ProductLayout::tn, 768, 256, 2048},
};
// Products of pr1105: MLP, attention projections, head.
constexpr Case kDeviceCases[] = {
    {"nt", ProductLayout::nt, 32768, 1792, 512}, {"nn", ProductLayout::nn, 32768, 512, 1792},
    {"tn", ProductLayout::tn, 1792, 512, 32768}, {"nt", ProductLayout::nt, 32768, 1024, 512},
    {"nn", ProductLayout::nn, 32768, 512, 1024}, {"tn", ProductLayout::tn, 1024, 512, 32768},
};

// Multiples of 1/128, which bf16 holds exactly: what is checked is the product, not the rounding of its inputs.
void fill_exact(Rng& rng, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(static_cast<int>(rng.below(129)) - 64) / 128.0F;
}

double sampled_error(const Case& c, const float* a, const float* b, const float* out) {
  Rng rng(3);
  double worst = 0;
  for (int sample = 0; sample < 200; ++sample) {
    const auto i = static_cast<int64_t>(rng.below(static_cast<uint64_t>(c.m))),
               j = static_cast<int64_t>(rng.below(static_cast<uint64_t>(c.n)));
    double sum = 0, scale = 0;
    for (int64_t k = 0; k < c.k; ++k) {
      const double x = static_cast<double>(a[c.layout == ProductLayout::tn ? k * c.m + i : i * c.k + k]);
      const double y = static_cast<double>(b[c.layout == ProductLayout::nt ? j * c.k + k : k * c.n + j]);
      sum += x * y;
      scale += std::abs(x * y);
    }
    const double error = std::abs(static_cast<double>(out[i * c.n + j]) - sum) / scale;
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

// Product and peak take turns at intervals of one length, so a busy neighbour takes its part of both.
void time_product(ThreadPool& pool, const cpu::GemmArgs& args, void* workspace, double seconds, GemmLine& line) {
  const double gflop = 2e-9 * static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k);
  std::vector<double> rates, peaks, shares;
  const double once = measure([&] { cpu::gemm(pool, args, workspace); }, 0, kLeastSamples).median;
  double before = cpu::fma_rate_gflops(pool, once);
  line.timing = measure(
      [&] {
        const double took = measure_once([&] { cpu::gemm(pool, args, workspace); });
        const double after = cpu::fma_rate_gflops(pool, once);
        rates.push_back(gflop / took);
        peaks.push_back(after);
        shares.push_back(2 * rates.back() / (before + after));
        before = after;
      },
      seconds, kLeastSamples);
  line.gflops = median(rates);
  line.peak = median(peaks);
  line.share = median(shares);
  line.best_share = *std::max_element(rates.begin(), rates.end()) / *std::max_element(peaks.begin(), peaks.end());
  line.timing.median = gflop / line.gflops;
}

}  // namespace

std::vector<GemmLine> bench_gemm(ThreadPool& pool, double seconds_each) {
  std::vector<GemmLine> lines;
  for (const Case& c : kCases) {
    const Spec spec_a{{c.m, c.k}}, spec_b{{c.n, c.k}}, spec_c{{c.m, c.n}};
    const auto scratch = static_cast<int64_t>(cpu::gemm_workspace(pool.threads()));
    Arena arena("bench", spec_a.bytes() + spec_b.bytes() + spec_c.bytes() + static_cast<size_t>(scratch) + 4 * kArenaAlignment);
    float* a = arena.make("a", spec_a).as<float>();
    float* b = arena.make("b", spec_b).as<float>();
    float* out = arena.make("c", spec_c).as<float>();
    std::byte* workspace = arena.make("scratch", {{scratch}, DType::u8}).data;
    Rng rng(1);
    fill_exact(rng, {a, static_cast<size_t>(c.m * c.k)});
    fill_exact(rng, {b, static_cast<size_t>(c.n * c.k)});
    const cpu::GemmArgs args{.layout = c.layout,
                             .m = c.m,
                             .n = c.n,
                             .k = c.k,
                             .a = a,
                             .lda = c.layout == ProductLayout::tn ? c.m : c.k,
                             .b = b,
                             .ldb = c.layout == ProductLayout::nt ? c.k : c.n,
                             .c = out,
                             .ldc = c.n};
    cpu::gemm(pool, args, workspace);
    GemmLine line{.layout = c.name, .m = c.m, .n = c.n, .k = c.k, .error = sampled_error(c, a, b, out)};
    if (!(line.error <= kProductErrorLimit))
      throw WorkError(std::string("gemm ") + c.name + ": wrong result; nothing was timed");
    time_product(pool, args, workspace, seconds_each, line);
    lines.push_back(line);
  }
  return lines;
}

std::vector<GemmLine> bench_device_gemm(bool bf16, double seconds_each) {
  const cuda::PeakFlops peaks = cuda::peak_flops();
  const double peak = (bf16 ? peaks.bf16 : peaks.f32) * 1e-9;
  std::vector<GemmLine> lines;
  for (const Case& c : kDeviceCases) {
    std::vector<float> a(static_cast<size_t>(c.m * c.k)), b(static_cast<size_t>(c.n * c.k));
    Rng rng(1);
    fill_exact(rng, a);
    fill_exact(rng, b);
    // Activations and their gradients are bf16, gradients of weights are float.
    const bool rounded = bf16 && c.layout != ProductLayout::tn;
    const cuda::ProductRequest request{
        .layout = c.layout, .m = c.m, .n = c.n, .k = c.k, .bf16_in = bf16, .bf16_out = rounded, .a = a.data(), .b = b.data()};
    const cuda::TimedProduct timed = cuda::time_product(request, seconds_each, kLeastSamples);
    GemmLine line{.layout = c.name, .m = c.m, .n = c.n, .k = c.k, .peak = peak};
    line.error = sampled_error(c, a.data(), b.data(), timed.result.data());
    if (!(line.error <= (rounded ? kBf16ProductErrorLimit : kProductErrorLimit)))
      throw WorkError(std::string("gemm ") + c.name + ": wrong result on the device, relative error " +
                      std::to_string(line.error));
    const double gflop = 2e-9 * static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k);
    line.timing = timing_of(timed.seconds);
    line.gflops = gflop / line.timing.median;
    line.share = line.gflops / peak;
    line.best_share = gflop / line.timing.best / peak;
    lines.push_back(line);
  }
  return lines;
}

}  // namespace fairway::bench
