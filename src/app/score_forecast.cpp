#include "app/score_forecast.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "model/initialize.h"

namespace fairway::app {

double seconds_needed(const ScoredModel& model, const ScoreSettings& settings, int64_t targets, Machine& machine,
                      Communicator& comm) {
  double needed = 0;
  if (comm.root()) needed = make_evaluator(model, settings, {machine.executor.get(), &machine.queue.pool()})->estimate(targets);
  if (is_legal(settings)) needed /= comm.size();
  comm.broadcast(make_view(&needed, {{1}, DType::f64}));
  return needed;
}

void require_score_time(const Recipe& recipe, const HeldOut& held_out, double most, const Compute& compute,
                        Communicator& comm) {
  Machine machine(compute);
  const ScoredModel fresh{recipe,
                          {.looped = recipe.model.loop.count > 0},
                          [&](ParamStore& params) { initialize(params, recipe.model, 1, machine.queue.pool()); },
                          held_out.bytes};
  ScoreSettings settings{.score = recipe.score};
  settings.score.stride = std::min(recipe.score.stride, recipe.score.context);
  const int64_t targets = challenge_targets(static_cast<int64_t>(held_out.tokens.size()), recipe.score.context);
  const double needed = seconds_needed(fresh, settings, targets, machine, comm);
  if (needed <= most) return;
  throw InputError(fmt::format(
      "--score-seconds {:g}: after training, {} of {} tokens would take about {:.3g} s on this machine{}; choose another "
      "evaluation (--set score.mode=\"plain\"), or more seconds than the rules allow (0: any)",
      most, name_of(recipe.score.mode), targets, needed, comm.size() > 1 ? fmt::format(" with {} ranks", comm.size()) : ""));
}

}  // namespace fairway::app
