// What each way to quantize a run's weights costs in bytes and in bits per byte, scored from the bytes of the file that it
// would write. The rows are those that published systems differ in: rounding, the search for a clip, GPTQ with three
// calibrations, SDClip and its Hessian-aware form, two widths, and the allocator at the size of uniform settings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stages/scoring.h"

namespace fairway::bench {

struct QuantizeBenchOptions {
  std::string train_data;              // folder of training shards; empty: RUN/data
  std::vector<std::string> overrides;  // key=value, in every row
  std::vector<std::string> only;       // parts of the names of the rows that are wanted; empty: all
  int64_t calibration_tokens = 64 * 2048;
};

struct QuantizeBenchRow {
  std::string name;
  int64_t bytes = 0;
  double bits_per_weight = 0, bits_per_byte = 0;
  double damage = 0;  // bits per byte beyond those of single precision
  double seconds = 0;
};

// Tells each row as soon as it is there. The scoring's weights are replaced.
void bench_quantize(Scoring& scoring, const QuantizeBenchOptions& options, Machine& machine, bool quiet,
                    const std::function<void(const QuantizeBenchRow&)>& tell);

}  // namespace fairway::bench
