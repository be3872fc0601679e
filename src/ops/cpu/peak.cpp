#include "ops/cpu/peak.h"

#include <algorithm>
#include <chrono>

#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {

double fma_peak_gflops(ThreadPool& pool, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kRounds = 20000;  // about 40 microseconds
  const auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
  const auto& table = kernels();
  const double threads = pool.threads();
  double best = 0;
  const auto start = Clock::now();
  do {
    const auto burst = Clock::now();
    pool.parallel_for(pool.threads(), [&](int64_t) { table.fma_burst(kRounds); });
    const double flops = threads * kRounds * table.fma_burst(1);
    best = std::max(best, flops / since(burst) * 1e-9);
  } while (since(start) < seconds);
  return best;
}

}  // namespace fairway::cpu
