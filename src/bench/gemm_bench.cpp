#include "bench/gemm_bench.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/peak.h"

namespace fairway::bench {
namespace {

constexpr double kPeakSeconds = 0.05, kErrorLimit = 1e-4;

struct Case {
  const char* name;
  cpu::GemmLayout layout;
  int64_t m, n, k;
};
constexpr Case kCases[] = {
    {"nt", cpu::GemmLayout::nt, 4096, 1536, 512}, {"nn", cpu::GemmLayout::nn, 4096, 512, 1536},
    {"tn", cpu::GemmLayout::tn, 1536, 512, 4096}, {"nt", cpu::GemmLayout::nt, 4096, 512, 512},
    {"tn", cpu::GemmLayout::tn, 512, 512, 4096},  {"nt", cpu::GemmLayout::nt, 2048, 768, 256},
    {"nn", cpu::GemmLayout::nn, 2048, 256, 768},  {"tn", cpu::GemmLayout::tn, 768, 256, 2048},
};

double sampled_error(const Case& c, const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& out) {
  Rng rng(3);
  double worst = 0;
  for (int sample = 0; sample < 200; ++sample) {
    const auto i = static_cast<int64_t>(rng.below(static_cast<uint64_t>(c.m))),
               j = static_cast<int64_t>(rng.below(static_cast<uint64_t>(c.n)));
    double sum = 0, scale = 0;
    for (int64_t k = 0; k < c.k; ++k) {
      const double x = static_cast<double>(a[static_cast<size_t>(c.layout == cpu::GemmLayout::tn ? k * c.m + i : i * c.k + k)]);
      const double y = static_cast<double>(b[static_cast<size_t>(c.layout == cpu::GemmLayout::nt ? j * c.k + k : k * c.n + j)]);
      sum += x * y;
      scale += std::abs(x * y);
    }
    const double error = std::abs(static_cast<double>(out[static_cast<size_t>(i * c.n + j)]) - sum) / scale;
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

}  // namespace

std::vector<GemmLine> bench_gemm(ThreadPool& pool, double seconds_each) {
  std::vector<std::byte> workspace(cpu::gemm_workspace(pool.threads()));
  std::vector<GemmLine> lines;
  for (const Case& c : kCases) {
    std::vector<float> a(static_cast<size_t>(c.m * c.k)), b(static_cast<size_t>(c.n * c.k)),
        out(static_cast<size_t>(c.m * c.n));
    Rng rng(1);
    for (float& x : a) x = static_cast<float>(rng.uniform01() - 0.5);
    for (float& x : b) x = static_cast<float>(rng.uniform01() - 0.5);
    cpu::GemmArgs args{.layout = c.layout,
                       .m = c.m,
                       .n = c.n,
                       .k = c.k,
                       .a = a.data(),
                       .lda = c.layout == cpu::GemmLayout::tn ? c.m : c.k,
                       .b = b.data(),
                       .ldb = c.layout == cpu::GemmLayout::nt ? c.k : c.n,
                       .c = out.data(),
                       .ldc = c.n};
    cpu::gemm(pool, args, workspace.data());
    GemmLine line{.layout = c.name, .m = c.m, .n = c.n, .k = c.k, .error = sampled_error(c, a, b, out)};
    if (!(line.error <= kErrorLimit)) throw WorkError(std::string("gemm ") + c.name + ": wrong result; nothing was timed");
    const double before = cpu::fma_peak_gflops(pool, kPeakSeconds);
    line.timing = measure([&] { cpu::gemm(pool, args, workspace.data()); }, seconds_each);
    const double peak = std::max(before, cpu::fma_peak_gflops(pool, kPeakSeconds));
    const double gflop = 2e-9 * static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k);
    line.gflops = gflop / line.timing.median;
    line.best_share = gflop / line.timing.best / peak;
    line.share = line.gflops / peak;
    lines.push_back(line);
  }
  return lines;
}

}  // namespace fairway::bench
