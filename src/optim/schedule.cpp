#include "optim/schedule.h"

#include <algorithm>

namespace fairway {

double Progress::fraction() const {
  if (clock == ScheduleClock::steps) return total_steps > 0 ? static_cast<double>(step) / static_cast<double>(total_steps) : 1;
  return budget > 0 ? std::min(elapsed / budget, 1.0) : 1;
}

bool Progress::finished() const {
  if (clock == ScheduleClock::steps) return step >= total_steps;
  return elapsed >= budget || (step > 0 && elapsed + next_step > budget);
}

// The longest of the last steps with a margin; what one slow step added fades over the next twenty or so.
void Progress::took(double seconds) {
  constexpr double kMargin = 1.25, kFading = 0.9;
  elapsed += seconds;
  next_step = std::max(kMargin * seconds, kFading * next_step);
}

double learning_rate_scale(const ScheduleRecipe& schedule, const Progress& at) {
  double scale = 1;
  if (schedule.style == ScheduleStyle::fraction) {
    const double left = 1 - at.fraction();
    if (left <= schedule.warmdown_fraction && schedule.warmdown_fraction > 0) scale = left / schedule.warmdown_fraction;
  } else if (at.clock == ScheduleClock::steps) {
    const auto left = static_cast<double>(std::max<int64_t>(at.total_steps - at.step, 0));
    if (left <= schedule.warmdown_iters && schedule.warmdown_iters > 0) scale = left / schedule.warmdown_iters;
  } else {  // iterations are turned into time by the mean step so far
    const double step_seconds = at.elapsed / static_cast<double>(std::max<int64_t>(at.step, 1));
    const double warmdown = schedule.warmdown_iters * step_seconds, left = std::max(at.budget - at.elapsed, 0.0);
    if (left <= warmdown && warmdown > 0) scale = left / warmdown;
  }
  return std::max(scale, schedule.floor);
}

double muon_momentum(const MatrixRecipe& matrix, int64_t step) {
  if (matrix.momentum_warmup_steps <= 0) return matrix.momentum;
  const double part = std::min(static_cast<double>(step) / static_cast<double>(matrix.momentum_warmup_steps), 1.0);
  return matrix.momentum_start + (matrix.momentum - matrix.momentum_start) * part;
}

bool loop_due(const LoopRecipe& loop, const Progress& at) { return loop.count > 0 && at.fraction() >= loop.at_fraction; }

}  // namespace fairway
