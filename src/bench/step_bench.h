// A whole training step of a recipe: checked against the reference backend, timed, and split by op.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/compare.h"
#include "backends/op_table.h"
#include "bench/timing.h"
#include "train/trainer.h"

namespace fairway::bench {

// The recipe with one micro-batch of rows × length tokens per step and one rank.
Recipe small_recipe(Recipe recipe, int64_t rows, int64_t length);

// Forward and backward of one random micro-batch on both executors, call by call.
CompareResult compare_recipe(const Recipe& recipe, ModelStage stage, Executor& truth, Executor& candidate, double tolerance,
                             ThreadPool& pool);

struct StepBench {
  Timing step;              // forward, backward, clip, update, averages
  Timing passes;            // forward and backward alone
  Timing losses;            // forward alone, without anything kept for gradients: the losses of the same batch
  double tokens = 0;        // of a step
  double flops = 0;         // of a step, by the recipe's formula
  double checked = 0;       // worst normalised error against ref, on a small geometry
  std::vector<OpLine> ops;  // of the passes, largest first
};

using NextBatch = std::function<MicroBatch()>;

// `next` gives the batches of the steps; empty: random tokens in documents of random lengths.
StepBench bench_step(const Recipe& recipe, ModelStage stage, double seconds, Executor& executor, Executor& truth,
                     ThreadPool& pool, const NextBatch& next = {});

}  // namespace fairway::bench
