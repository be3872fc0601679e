// Training steps shared by several ranks: how long they take, what they send, and which weights they leave. Any number of
// ranks must leave the same ones. From the passes of one rank follows the step of as many GPUs (scaling.h).
#pragma once

#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "bench/scaling.h"
#include "bench/timing.h"
#include "train/trainer.h"

namespace fairway::bench {

// The recipe with `world` emulated ranks, each with one micro-batch of `tokens` tokens.
Recipe shared_recipe(Recipe recipe, int64_t world, int64_t tokens);

struct SharedSteps {
  int ranks = 1;
  Timing step;              // of all emulated ranks' tokens
  Timing passes;            // forward and backward of one emulated rank
  int64_t bytes_sent = 0;   // by this rank in one step
  int64_t update_sent = 0;  // of them for gradients and updates, without single numbers
  double loss = 0;          // of the last step
  std::string weights;      // SHA-256 of all weights after the steps; of the root alone
};

// Every rank calls it; the same random tokens for any number of them.
SharedSteps measure_shared_steps(const Recipe& recipe, int steps, Executor& executor, Communicator& comm, ThreadPool& pool);

// WorkError that names the first two that left other weights.
void require_same_weights(const std::vector<SharedSteps>& measured);

// The step of `world` GPUs with one emulated rank on each, as this program exchanges there, from the passes measured on one.
StepModel predict_step(const Recipe& recipe, const Gpu& gpu, const SharedSteps& measured);

// The links and rates that are known for a device of this name; "" for others.
std::string scaling_gpu_of(const std::string& device);

}  // namespace fairway::bench
