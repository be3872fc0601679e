// Where a stage computes.
#pragma once

#include <memory>
#include <string>

#include "autograd/executor.h"
#include "base/lap_clock.h"

namespace fairway {

struct Compute {
  std::string backend = "cpu";
  int threads = 0;  // 0: as many as the machine has
  bool quiet = false;
};

const std::string& default_backend();  // a supported device where there is one

struct Machine {
  explicit Machine(const Compute& compute);
  Queue queue;
  std::unique_ptr<Executor> executor;
  LapClock laps;  // of what the stage does, for its report
};

}  // namespace fairway
