#include "app/bench_machine.h"

#include <fmt/core.h>

#include <algorithm>

#include "app/kept_peak.h"
#include "backends/backends.h"
#include "base/error.h"
#include "bench/step_bench.h"
#include "ops/cuda/device.h"

namespace fairway::app {

Recipe recipe_to_time(const std::string& name, const std::vector<std::string>& overrides, int64_t tokens) {
  const Recipe recipe = load_recipe(name, overrides);
  const int64_t length = recipe.data.seq_len;
  if (tokens == 0) tokens = std::min<int64_t>(recipe.train.micro_batch_tokens, 2 * length);
  if (tokens % length != 0) throw InputError(fmt::format("--tokens {}: not a multiple of data.seq_len = {}", tokens, length));
  return bench::small_recipe(recipe, tokens / length, length);
}

BenchMachine::BenchMachine(const Compute& compute) : machine(compute), check_queue(machine.queue.pool().threads()) {
  const bool on_device = machine.executor->backend() == Backend::cuda;
  truth = make_executor(on_device ? Backend::cpu : Backend::ref, check_queue);
  peak = on_device ? cuda::peak_flops().bf16 : kept_peak_gflops(machine.queue.pool()) * 1e9;
}

}  // namespace fairway::app
