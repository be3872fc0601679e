// Runs one program on two executors, call by call, and names the first call whose results differ.
#pragma once

#include <optional>
#include <string>

#include "autograd/executor.h"

namespace fairway {

struct Divergence {
  size_t call = 0;
  std::string op, label, tensor;  // "attention", "block3", "d q"
  bool backward = false;
  double error = 0;  // NMSE; NaN and infinity count as different
};

struct CompareResult {
  std::optional<Divergence> first;  // above the tolerance
  double worst = 0;                 // over all calls
  size_t calls = 0;
};

// Both sides work on copies of the recording's memory; after each call the candidate takes over the truth's results, so
// that an error is charged to the call that made it and not to those that inherit it.
CompareResult compare(const Recording& recording, Executor& truth, Executor& candidate, double tolerance);

// Σ(a−b)²/Σb², or infinity where a value is not finite or differs in kind; 0 for two zeros.
double normalized_error(const Tensor& candidate, const Tensor& truth);

}  // namespace fairway
