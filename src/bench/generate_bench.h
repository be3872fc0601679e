// Generation from an artifact: loading, the first token, the rate of tokens, and the memory it reads against what the machine
// can read. Logits are held against the scorer's before anything is timed.
#pragma once

#include <string_view>

#include "bench/timing.h"
#include "tensor/queue.h"

namespace fairway::bench {

struct GenerateBenchOptions {
  int64_t tokens = 128;  // of a text, from an empty window
  int texts = 9;
};

struct GenerateBench {
  double error = 0;                                        // of the logits, largest difference over the largest logit
  double read_ms = 0, first_token_ms = 0;                  // from the file's bytes to packed weights; to the first token
  double tokens_per_second = 0, slowest = 0, fastest = 0;  // median of the texts
  size_t weight_bytes = 0;                                 // read for each token
  double gb_per_s = 0;                                     // of weights
  double memory_gb_per_s = 0;                              // a plain read of as many bytes on as many threads, median
};

// WorkError when the logits differ.
GenerateBench bench_generate(std::string_view artifact, const GenerateBenchOptions& options, Queue& queue);

}  // namespace fairway::bench
