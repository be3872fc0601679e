// Attention of a recipe's training step over rows without documents and over documents of several lengths, call by call.
#pragma once

#include <string>
#include <vector>

#include "backends/op_table.h"
#include "bench/timing.h"
#include "recipe/recipe.h"

namespace fairway::bench {

struct AttentionBench {
  struct Line {
    std::string documents;     // "rows of 2048", "of 512"
    double keys = 0;           // that a query sees, on average
    Timing forward, backward;  // of one call
    OpLine all_forward, all_backward;
  };
  double checked = 0;  // worst normalised error against `truth`, on a small geometry
  std::vector<Line> lines;
};

// Times the passes of the recipe's micro-batch, each mix for `seconds`. WorkError when a backend differs from `truth`; nothing
// is timed then.
AttentionBench bench_attention(const Recipe& recipe, double seconds, Executor& executor, Executor& truth, ThreadPool& pool);

}  // namespace fairway::bench
