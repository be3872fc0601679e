// Averages of the weights along a run (spec §11.1, §11.2): EMA after every step, SWA over late snapshots. They watch the
// parameters and know nothing of optimizers.
#pragma once

#include <memory>

#include "autograd/executor.h"
#include "model/param_store.h"
#include "recipe/recipe.h"

namespace fairway {

class Averager {
 public:
  Averager(const Recipe& recipe, const ParamStore& params, Executor& executor);

  void start();  // the EMA begins at the parameters as they are now
  void observe(int64_t steps_done, double learning_rate_scale);

  // The weights the run ends with, by average.use. An SWA without a snapshot yet gives the parameters themselves.
  Tensor result() const;
  std::string result_name() const;

  Tensor ema() const { return ema_; }  // absent when the recipe keeps none
  Tensor swa() const { return swa_; }
  int64_t snapshots() const { return snapshots_; }
  void restore_snapshots(int64_t count) { snapshots_ = count; }

 private:
  AverageRecipe rule_;
  const ParamStore* params_;
  Executor* executor_;
  Arena arena_;
  Tensor ema_, swa_, scalars_;
  int64_t snapshots_ = 0;
  std::unique_ptr<Session> ema_step_, swa_step_;
};

}  // namespace fairway
