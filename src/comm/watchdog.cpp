#include "comm/watchdog.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/error.h"

namespace fairway {

Watchdog::Watchdog(std::span<Beat> beats, size_t self, double limit, std::function<void(size_t rank)> silent)
    : beats_(beats), self_(self), limit_(limit), interval_(std::clamp(limit / 20, 0.005, 0.5)), silent_(std::move(silent)) {
  thread_ = std::jthread([this](std::stop_token token) { watch(token); });
}

void Watchdog::watch(std::stop_token token) {
  std::vector<uint64_t> seen(beats_.size());
  std::vector<double> still(beats_.size());
  std::mutex mutex;
  std::condition_variable_any wake;
  while (!token.stop_requested()) {
    beats_[self_].fetch_add(1, std::memory_order_relaxed);
    {
      std::unique_lock lock(mutex);
      wake.wait_for(lock, token, std::chrono::duration<double>(interval_), [] { return false; });
    }
    if (token.stop_requested()) return;
    for (size_t rank = 0; rank < beats_.size(); ++rank) {
      const uint64_t beat = beats_[rank].load(std::memory_order_relaxed);
      still[rank] = beat == seen[rank] ? still[rank] + interval_ : 0;
      seen[rank] = beat;
      if (rank != self_ && still[rank] >= limit_) {
        silent_(rank);
        return;
      }
    }
  }
}

double watchdog_limit() {
  constexpr double kDefault = 20, kLeast = 0.1, kMost = 1e6;
  const char* text = std::getenv("FAIRWAY_WATCHDOG_SECONDS");
  if (text == nullptr) return kDefault;
  double value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc{} || *end != '\0' || !(value >= kLeast && value <= kMost))
    throw InputError(std::string("FAIRWAY_WATCHDOG_SECONDS = ") + text + ": expected seconds from 0.1 to 1000000");
  return value;
}

}  // namespace fairway
