// Matrix products of a backend: the CPU's against the machine's measured multiply-add peak, a device's, in shapes of training,
// against the datasheet's.
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
  double share = 0;       // median over the samples: each over the peak measured right before and after it
  double best_share = 0;  // the fastest sample over the fastest peak: what is left when the machine is not disturbed
  double peak = 0;        // GFLOP/s, median
  double error = 0;       // worst relative error of sampled elements against double sums
};

// WorkError when a result is wrong: nothing is timed then.
std::vector<GemmLine> bench_gemm(ThreadPool& pool, double seconds_each);
std::vector<GemmLine> bench_device_gemm(bool bf16, double seconds_each);

}  // namespace fairway::bench
