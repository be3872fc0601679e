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
  double next_step = 0;     // time clock: seconds the next step may take, judged by those before it; 0: not known yet

  double fraction() const;  // 0 … 1 of the run
  // Asked after a step. By the clock a run ends before a step that may not fit into the budget; one step is made in any case.
  bool finished() const;
  void took(double seconds);  // a step: counts its time and foresees the next one's
};

double learning_rate_scale(const ScheduleRecipe&, const Progress&);
double muon_momentum(const MatrixRecipe&, int64_t step);
bool loop_due(const LoopRecipe&, const Progress&);

}  // namespace fairway
