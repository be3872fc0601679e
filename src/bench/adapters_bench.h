// One chunk of a batch of documents as lora-ttt scores and learns it, for windows of several lengths. Before anything is timed
// the same document is scored in every place of a batch, which must give the same bits.
#pragma once

#include <vector>

#include "autograd/executor.h"
#include "backends/op_table.h"
#include "bench/timing.h"
#include "recipe/recipe.h"

namespace fairway::bench {

struct AdaptersBench {
  struct Line {
    int64_t window = 0;  // tokens of each document
    Timing chunk;        // its score and its step
    double targets_per_second = 0;
  };
  int64_t documents = 0;
  std::vector<Line> lines;
  std::vector<OpLine> ops;  // of the longest window's pass, largest first; without the adapters' step
};

// WorkError when places of a batch differ. Each window is timed for `seconds`.
AdaptersBench bench_adapters(const Recipe& recipe, int64_t documents, double seconds, Executor& executor, ThreadPool& pool);

}  // namespace fairway::bench
