// Muon for the matrix banks, AdamW for the rest (spec §7, §8), as recorded programs. Gradients arrive rank by rank: each
// emulated rank's gradient is clipped on its own and joins the mean, as if that many devices had worked (spec §7, clipping).
#pragma once

#include <memory>
#include <vector>

#include "autograd/executor.h"
#include "ops/step_scalars.h"
#include "params/param_store.h"
#include "recipe/recipe.h"

namespace fairway {

struct StepNumbers {
  double learning_rate_scale = 1;
  double momentum = 0;
  int64_t step = 1;  // counted from 1, for Adam's bias correction
};

class Optimizer {
 public:
  Optimizer(const Recipe& recipe, const ParamStore& params);

  void begin_rank(Executor&);              // gradients of the next emulated rank start at zero
  void end_rank(Executor&, int64_t rank);  // clip them, add them to the mean
  void update(Executor&, const StepNumbers&);

  double gradient_norm(Executor&) const;             // of the last rank, before clipping
  Tensor flat_state() const { return flat_state_; }  // momentum and moments: what a checkpoint keeps
  const Tensor& scalars() const { return scalars_; }

 private:
  Program record_clip() const;
  Program record_mean(bool first) const;
  Program record_update(const Recipe& recipe);
  void record_muon(class Tape& tape, const MatrixRecipe& rule, const ParamBank& bank, const Tensor& grad, const Tensor& buffer);

  const ParamStore* params_;
  int64_t world_;
  double clip_norm_;
  Arena state_;
  Arena work_;
  Tensor flat_state_, scalars_, totals_, clip_;
  Tensor mean_;  // of the ranks' clipped gradients; absent when there is one rank
  std::unique_ptr<BoundProgram> zero_, clip_program_, mean_first_, mean_next_, update_;
};

}  // namespace fairway
