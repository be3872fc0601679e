// Notices a rank that has stopped: each rank's watchdog counts up its own beat in memory all ranks of the machine share and
// looks at the others'. A beat that stands still for `limit` seconds of this rank's own running time is a rank that is stopped
// or gone; time during which this rank did not run itself counts for nobody.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <thread>
#include <vector>

namespace fairway {

class Watchdog {
 public:
  using Beat = std::atomic<uint64_t>;
  static_assert(Beat::is_always_lock_free);
  // `beats` has one element for each rank and outlives the watchdog. `silent` is called once, on the watchdog's thread.
  Watchdog(std::span<Beat> beats, size_t self, double limit, std::function<void(size_t rank)> silent);

 private:
  void watch(std::stop_token token);

  std::span<Beat> beats_;
  size_t self_;
  double limit_, interval_;
  std::function<void(size_t rank)> silent_;
  std::jthread thread_;
};

// FAIRWAY_WATCHDOG_SECONDS, else 20: with the time a launcher takes to end the rest, a run ends within 30 s.
double watchdog_limit();

}  // namespace fairway
