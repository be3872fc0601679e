#include "bench/ranks_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/sha256.h"
#include "bench/random_batch.h"
#include "optim/gradient_layout.h"

namespace fairway::bench {
namespace {

constexpr int kUntimed = 2;  // steps in which a device's graphs are made

}  // namespace

Recipe shared_recipe(Recipe recipe, int64_t world, int64_t tokens) {
  recipe.train.emulated_world = world;
  recipe.train.micro_batch_tokens = tokens;
  recipe.train.batch_tokens = world * tokens;
  return recipe;
}

SharedSteps measure_shared_steps(const Recipe& recipe, int steps, Executor& executor, Communicator& comm, ThreadPool& pool) {
  FAIRWAY_ASSERT(steps > kUntimed, "no step would be timed");
  const Geometry geometry = micro_batch_geometry(recipe);
  Trainer trainer(recipe, geometry, executor, comm);
  trainer.initialize(1, pool);
  const int64_t local = emulated_share(recipe.train.emulated_world, comm.size());
  std::vector<RandomBatch> batches;
  for (int64_t i = 0; i < local; ++i)
    batches.emplace_back(recipe, geometry, static_cast<uint64_t>(100 + comm.rank() * local + i));
  size_t at = 0;
  const auto next = [&] { return batches[at++ % batches.size()].view(); };

  SharedSteps result{.ranks = comm.size()};
  std::vector<double> seconds;
  CommCounters before = comm.counters();
  for (int step = 1; step <= steps; ++step) {
    if (step == kUntimed + 1) before = comm.counters();
    comm.barrier();
    const double start = seconds_now();
    result.loss = trainer.step(next, {.momentum = 0.9, .step = step}, {}).loss;
    if (step > kUntimed) seconds.push_back(seconds_now() - start);
  }
  result.step = timing_of(seconds);
  const CommCounters sent = comm.counters().since(before);
  result.update_sent = (sent.exchange.bytes + sent.all_gather.bytes + sent.gather.bytes) / (steps - kUntimed);
  result.bytes_sent = result.update_sent + (sent.all_reduce.bytes + sent.broadcast.bytes) / (steps - kUntimed);

  trainer.fetch_state();
  if (comm.root()) {
    const Tensor weights = trainer.params().flat_values();
    result.weights = sha256_hex({reinterpret_cast<const char*>(weights.data), weights.spec.bytes()});
  }
  // Ranks that share a device or cores would time each other: all but the root wait.
  if (comm.root()) {
    trainer.load(batches.front().view(), 1);
    result.passes = measure(
        [&] {
          trainer.session({}).run();
          executor.wait();
        },
        0.2);
  }
  comm.barrier();
  return result;
}

void require_same_weights(const std::vector<SharedSteps>& measured) {
  for (const SharedSteps& one : measured) {
    if (one.weights == measured.front().weights) continue;
    throw WorkError(fmt::format("{} ranks left other weights than {} (SHA-256 {} and {}); no time of them counts", one.ranks,
                                measured.front().ranks, one.weights.substr(0, 12), measured.front().weights.substr(0, 12)));
  }
}

StepModel predict_step(const Recipe& recipe, const Gpu& gpu, const SharedSteps& measured) {
  // NCCL's exchanges do not hold up the host, so matrices set out during the backward pass, but not those that are rounded
  // once the clip is known.
  const bool rounded = recipe.optim.exchange_precision == Precision::bf16;
  return model_step(recipe, gpu,
                    {.ranks = static_cast<int>(recipe.train.emulated_world),
                     .tokens = static_cast<double>(recipe.train.micro_batch_tokens),
                     .passes_ms = measured.passes.median * 1e3,
                     .schedule = rounded ? Schedule::packed : Schedule::early});
}

std::string scaling_gpu_of(const std::string& device) {
  for (const auto& [word, name] : {std::pair{"H100", "h100"}, {"H200", "h200"}})
    if (device.find(word) != std::string::npos) return name;
  return "";
}

}  // namespace fairway::bench
