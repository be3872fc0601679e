// The machine's floating-point ceiling, measured: what '% of speed of light' is a percentage of.
#pragma once

#include "base/thread_pool.h"

namespace fairway::cpu {

// Best rate in GFLOP/s of independent multiply-adds on all threads of the pool, over bursts that fill about `seconds`.
double fma_peak_gflops(ThreadPool& pool, double seconds);

// The rate over the whole of such an interval, whoever else disturbed it: the measure for work timed right beside it.
double fma_rate_gflops(ThreadPool& pool, double seconds);

}  // namespace fairway::cpu
