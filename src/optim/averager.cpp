#include "optim/averager.h"

#include <cstring>

#include "autograd/tape.h"

namespace fairway {
namespace {

bool keeps_ema(const AverageRecipe& rule) { return rule.use == AverageUse::ema; }
bool keeps_swa(const AverageRecipe& rule) { return rule.use == AverageUse::swa || rule.swa.enabled; }

}  // namespace

Averager::Averager(const Recipe& recipe, const ParamStore& params, Executor& executor)
    : rule_(recipe.average),
      params_(&params),
      executor_(&executor),
      arena_("averages",
             1024 + align_up(params.flat_values().spec.bytes()) * static_cast<size_t>(keeps_ema(rule_) + keeps_swa(rule_))) {
  const Tensor source = params.flat_values();
  scalars_ = arena_.make("scalars", {{kStepScalars}, DType::f64});
  if (keeps_ema(rule_)) {
    ema_ = arena_.make("ema", source.spec);
    Tape tape;
    tape.call(Lerp{.weight = 1 - rule_.ema_decay}, {tape.input("ema", ema_), tape.input("params", source), Var{}});
    ema_step_ = executor.open(std::move(tape).finish());
  }
  if (keeps_swa(rule_)) {
    swa_ = arena_.make("swa", source.spec);
    Tape tape;
    tape.call(Lerp{.slot = StepScalar::swa_weight},
              {tape.input("swa", swa_), tape.input("params", source), tape.input("scalars", scalars_)});
    swa_step_ = executor.open(std::move(tape).finish());
  }
}

void Averager::start() {
  const Tensor source = params_->flat_values();
  if (ema_) std::memcpy(ema_.data, source.data, source.spec.bytes());
}

void Averager::observe(int64_t steps_done, double learning_rate_scale) {
  if (ema_) ema_step_->run();
  if (swa_ && learning_rate_scale < rule_.swa.lr_mul_below && steps_done % rule_.swa.every == 0) {
    ++snapshots_;  // mean of all so far: swa += (params − swa)/count
    scalars_.as<double>()[static_cast<size_t>(StepScalar::swa_weight)] = 1.0 / static_cast<double>(snapshots_);
    executor_->upload(scalars_);
    swa_step_->run();
  }
}

Tensor Averager::result() const {
  if (rule_.use == AverageUse::ema) return ema_;
  if (rule_.use == AverageUse::swa && snapshots_ > 0) return swa_;
  return params_->flat_values();
}

std::string Averager::result_name() const {
  if (rule_.use == AverageUse::ema) return "ema";
  if (rule_.use == AverageUse::swa && snapshots_ > 0) return "swa";
  return "last";
}

}  // namespace fairway
