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
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  sigaction(SIGUSR1, &action, &old_user_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGUSR1, &old_user_, nullptr);
}

bool StopSignals::requested() const { return asked.load() != 0; }

}  // namespace fairway
