#include "bench/loader_bench.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace fairway::bench {
namespace {

// Pages of this process that belong to no file, from /proc; zero where that is not to be had.
uint64_t anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) << 10;
  return 0;
}

// Touches every page up to the limit through the loader's own mappings.
void warm(const data::ShardSet& shards, uint64_t limit) {
  std::vector<uint16_t> slab(1 << 16);
  for (size_t i = 0; i < shards.size() && limit > 0; ++i)
    for (uint64_t at = 0; at < shards[i].tokens() && limit > 0;) {
      const auto part = std::span(slab).first(std::min({static_cast<uint64_t>(slab.size()), shards[i].tokens() - at, limit}));
      shards[i].read(at, part);
      at += part.size();
      limit -= part.size();
    }
}

}  // namespace

LoaderBenchResult bench_loader(const std::filesystem::path& folder, const LoaderBenchOptions& options) {
  LoaderBenchResult result;
  const uint64_t memory_before = anonymous_memory();
  {
    const Stopwatch watch;
    const data::ShardSet shards = data::ShardSet::open_train(folder);
    result.open_seconds = watch.seconds();
    data::Loader loader(shards, options.sampling, options.loading);
    loader.next();
    result.first_batch_seconds = watch.seconds();
  }
  const data::ShardSet shards = data::ShardSet::open_train(folder);
  warm(shards, options.warm_tokens);
  data::Loader loader(shards, options.sampling, options.loading);
  const data::Batch& first = loader.next();
  const auto batch_tokens = static_cast<uint64_t>(first.tokens.numel());
  const uint64_t tensors = first.segment_start ? 3 : 2;
  result.buffer_bytes = batch_tokens * sizeof(int32_t) * tensors * (static_cast<uint64_t>(options.loading.queue) + 1);
  for (int64_t i = 0; i < 2 * loader.batches_per_step(); ++i) loader.next();

  const double waited = loader.waited_seconds();
  const Stopwatch watch;
  int64_t sum = 0;  // one read per row keeps the consumer honest without making it the bottleneck
  while (watch.seconds() < options.seconds) {
    const data::Batch& batch = loader.next();
    for (int64_t row = 0; row < batch.tokens.dim(0); ++row) sum += batch.targets.as<int32_t>()[row * batch.tokens.dim(1)];
    ++result.batches;
  }
  const double elapsed = watch.seconds();
  FAIRWAY_ASSERT(sum >= 0, "tokens are never negative");
  result.tokens = result.batches * batch_tokens;
  result.tokens_per_second = static_cast<double>(result.tokens) / elapsed;
  result.waited_share = (loader.waited_seconds() - waited) / elapsed;
  const uint64_t memory_after = anonymous_memory();
  result.anonymous_bytes = memory_after > memory_before ? memory_after - memory_before : 0;
  return result;
}

}  // namespace fairway::bench
