#include "ops/cpu/peak.h"

#include <algorithm>

#include "base/clock.h"
#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {

namespace {

constexpr int64_t kRounds = 20000;  // about 40 microseconds

}  // namespace

double fma_peak_gflops(ThreadPool& pool, double seconds) {
  const auto& table = kernels();
  const double threads = pool.threads();
  double best = 0;
  const Stopwatch all;
  do {
    const Stopwatch burst;
    pool.parallel_for(pool.threads(), [&](int64_t) { table.fma_burst(kRounds); });
    const double flops = threads * kRounds * table.fma_burst(1);
    best = std::max(best, flops / burst.seconds() * 1e-9);
  } while (all.seconds() < seconds);
  return best;
}

double fma_rate_gflops(ThreadPool& pool, double seconds) {
  constexpr double kBurstSeconds = 4e-5;
  const auto& table = kernels();
  const int64_t bursts = pool.threads() * std::max<int64_t>(1, static_cast<int64_t>(seconds / kBurstSeconds));
  const Stopwatch all;
  pool.parallel_for(bursts, [&](int64_t) { table.fma_burst(kRounds); });
  return static_cast<double>(bursts) * kRounds * table.fma_burst(1) / all.seconds() * 1e-9;
}

}  // namespace fairway::cpu
