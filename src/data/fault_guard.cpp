#include "data/fault_guard.h"

#include <setjmp.h>
#include <signal.h>

#include <mutex>

namespace fairway::data {
namespace {

thread_local sigjmp_buf* volatile active = nullptr;
struct sigaction previous;

void on_bus_error(int, siginfo_t*, void*) {
  if (active != nullptr) siglongjmp(*active, 1);
  sigaction(SIGBUS, &previous, nullptr);  // not ours: the access repeats and meets whoever was there before
}

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // the jump skips the handler's return, so the signal must not stay blocked
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
  });
}

}  // namespace

bool run_guarded(void (*body)(void*), void* context) {
  install();
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    active = nullptr;
    return false;
  }
  active = &here;
  body(context);
  active = nullptr;
  return true;
}

}  // namespace fairway::data
