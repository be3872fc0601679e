// Seconds by stage of work that goes on in turns: a lap ends one, and what has passed since the lap before counts as its.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace fairway {

class LapClock {
 public:
  void lap(std::string_view stage) {
    const double now = seconds_now(), passed = now - std::exchange(last_, now);
    for (auto& [name, seconds] : stages_) {
      if (name != stage) continue;
      seconds += passed;
      return;
    }
    stages_.emplace_back(stage, passed);
  }
  const std::vector<std::pair<std::string, double>>& stages() const { return stages_; }  // as they were first ended

 private:
  double last_ = seconds_now();
  std::vector<std::pair<std::string, double>> stages_;
};

}  // namespace fairway
