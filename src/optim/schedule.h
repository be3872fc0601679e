// What the clock decides: learning-rate multiplier, momentum, and when stages begin (spec §8.1, §10.2, §5.1). Pure functions.
#pragma once

#include <cstdint>

#include "recipe/recipe.h"

namespace fairway {

// Where a run stands before a step. With the steps clock only step and total_steps count, so that runs repeat bit for bit.
struct Progress {
  ScheduleClock clock = ScheduleClock::steps;
  int64_t step = 0;         // steps done
  int64_t total_steps = 0;  // steps clock: how many there will be
  double elapsed = 0;       // time clock: seconds of training so far, validation not counted
  double budget = 0;        // time clock: seconds there are

  double fraction() const;  // 0 … 1 of the run
  bool finished() const;    // asked after a step
};

double learning_rate_scale(const ScheduleRecipe&, const Progress&);
double muon_momentum(const MatrixRecipe&, int64_t step);
bool loop_due(const LoopRecipe&, const Progress&);

}  // namespace fairway
