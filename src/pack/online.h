// Hessians gathered while training goes on (scoring spec §4.8): now and then a forward pass with the current weights over a
// fresh micro-batch, from a loader of its own so that training sees the same data with and without it. Older sums fade, since
// the weights they came from are gone.
#pragma once

#include <filesystem>
#include <map>

#include "data/loader.h"
#include "pack/observed_forward.h"

namespace fairway {

struct OnlineOptions {
  int64_t every = 25;         // steps
  double lr_mul_below = 0.8;  // begins once the learning-rate multiplier is below this
  double keep = 0.9;          // weight of what was gathered before, at each pass
};

class OnlineCalibration {
 public:
  // Everything is made here, before the clock starts. `params` and `loader` must outlive it.
  OnlineCalibration(const Recipe& recipe, const ParamStore& params, data::Loader& loader, Executor& executor,
                    const OnlineOptions& options = {});

  // After each step (counted from 1), with that step's multiplier. Steps that a loaded file has seen already are skipped.
  void after_step(int64_t step, double learning_rate_scale, bool looped);
  void save(const std::filesystem::path& path, int64_t step);  // when something was gathered since the last time
  void load(const std::filesystem::path& path);                // goes on from there

  const HessianStore& hessians() const { return hessians_; }

 private:
  const Recipe* recipe_;
  data::Loader* loader_;
  OnlineOptions options_;
  std::map<bool, ObservedForward> forward_;  // by whether the loop is on
  HessianStore hessians_;
  int64_t seen_step_ = 0, passes_ = 0;
  bool changed_ = false;
};

}  // namespace fairway
