// How fast the loader is, by itself: what `fairway bench loader` prints.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/loader.h"

namespace fairway::bench {

struct LoaderBenchOptions {
  data::SamplerOptions sampling;  // coprime, T = 2048, 48 rows, world of 8 as they stand
  data::LoaderOptions loading;
  double seconds = 2;                  // of measuring, after one pass of warming up
  uint64_t warm_tokens = 200'000'000;  // read beforehand, so that files are cached and mapped
};

struct LoaderBenchResult {
  double open_seconds = 0;         // folder to ShardSet
  double first_batch_seconds = 0;  // folder to first batch in hand
  double tokens_per_second = 0;
  double waited_share = 0;       // of the measured time, spent waiting for the reader
  uint64_t buffer_bytes = 0;     // of batches; the memory of the loader but for its plan
  uint64_t anonymous_bytes = 0;  // growth of the process beyond mapped files while loading
  uint64_t tokens = 0, batches = 0;
};

LoaderBenchResult bench_loader(const std::filesystem::path& folder, const LoaderBenchOptions& options);

}  // namespace fairway::bench
