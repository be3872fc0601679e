// Where threads of a team wait for each other between parts that take microseconds: they spin, and sleep only after a while. A
// sleeping thread is woken at once; one that gives way instead waits for its turn behind all others of a busy machine.
#pragma once

#include <atomic>

namespace fairway {

class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}

  // What any thread wrote before it arrived is seen by all after they leave.
  void wait() {
    const unsigned round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1);  // sequential, or whoever falls asleep now could miss it and not be seen by notify_all()
      round_.notify_all();
      return;
    }
    for (int spins = 0; spins < kSpins; ++spins)
      if (round_.load(std::memory_order_acquire) != round) return;
    round_.wait(round, std::memory_order_acquire);
  }

 private:
  static constexpr int kSpins = 20000;  // tens of microseconds
  int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> round_{0};
};

}  // namespace fairway
