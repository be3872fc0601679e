#include "base/signals.h"

#include <atomic>

namespace fairway {
namespace {

std::atomic<int> asked{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  if (asked.exchange(1) != 0 && number == SIGINT) {  // the second one: the default action, at once
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
}

}  // namespace

StopSignals::StopSignals() {
  asked = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &old_[i]);
    if (kSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &old_[i], nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
}

bool StopSignals::requested() const { return asked.load() != 0; }

}  // namespace fairway
