// The one clock for durations. It never goes back; its zero means nothing.
#pragma once

#include <chrono>

namespace fairway {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Stopwatch {
 public:
  double seconds() const { return seconds_now() - begun_; }

 private:
  double begun_ = seconds_now();
};

}  // namespace fairway
