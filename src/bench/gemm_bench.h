// Matrix products of the CPU backend against the machine's measured multiply-add peak.
#pragma once

#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "bench/timing.h"

namespace fairway::bench {

struct GemmLine {
  std::string layout;  // nt, nn, tn
  int64_t m = 0, n = 0, k = 0;
  Timing timing;
  double gflops = 0;      // at the median
  double share = 0;       // of the peak measured right before and after
  double best_share = 0;  // of the fastest sample: what the kernel reaches when the machine is not disturbed
  double error = 0;       // worst relative error of sampled elements against double sums
};

std::vector<GemmLine> bench_gemm(ThreadPool& pool, double seconds_each);

}  // namespace fairway::bench
