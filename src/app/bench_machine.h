// What benches of a recipe's step share: the batch they time, the machine, the executor that results are compared with, the
// peak.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "stages/machine.h"

namespace fairway::app {

// The recipe with one micro-batch of `tokens` (0: two sequences, or less where its own micro-batch is) and one rank. InputError
// unless that is whole sequences.
Recipe recipe_to_time(const std::string& name, const std::vector<std::string>& overrides, int64_t tokens);

struct BenchMachine {
  explicit BenchMachine(const Compute& compute);
  Machine machine;
  Queue check_queue;
  // A device is checked against the CPU, itself checked against ref: scalar loops over a large model would take minutes.
  std::unique_ptr<Executor> truth;
  double peak;  // FLOP/s
};

}  // namespace fairway::app
