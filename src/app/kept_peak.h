// The processor's peak, which '% of speed of light' is a share of: measured once for a processor, its instructions and a number
// of threads, and kept in $XDG_CACHE_HOME/fairway/peak.json (~/.cache), so that shares of different runs can be compared.
#pragma once

#include <string>

#include "base/thread_pool.h"

namespace fairway::app {

std::string cpu_model();

// GFLOP/s. `anew` measures in any case, and keeps the result if it is better: neighbours make a machine slower, never faster.
// Where nothing can be kept, every process measures.
double kept_peak_gflops(ThreadPool& pool, bool anew = false);

}  // namespace fairway::app
