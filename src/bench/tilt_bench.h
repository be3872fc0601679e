// Hints of a whole stream (score/tilt_hints.h). Before anything is timed they are held to their definition, a look-up and a
// count for each target in turn, on the beginning of the stream, and to what one thread makes of all of it.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "bench/timing.h"
#include "recipe/adapt_recipe.h"

namespace fairway::bench {

struct TiltBench {
  int64_t tokens = 0, checked = 0;  // of the stream, and of its part that was looked up target by target
  int64_t hinted = 0, right = 0;    // targets with a hint, and those that it names
  int threads = 1;
  Timing pass;
  double tokens_per_second = 0;
};

// WorkError when the hints are not those of the definition.
TiltBench bench_tilt(const NgramRecipe& recipe, std::span<const uint16_t> stream, double seconds, ThreadPool& pool);

// Text of about the statistics that matter here: words by Zipf's law, and passages that come again.
std::vector<uint16_t> repeating_text(int64_t tokens, int64_t vocab);

}  // namespace fairway::bench
