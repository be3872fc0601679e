#include "data/fault_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <mutex>

namespace fairway::data {
namespace {

thread_local sigjmp_buf* volatile active = nullptr;
struct sigaction previous;

void on_bus_error(int, siginfo_t*, void* context) {
  if (active != nullptr) {
    // The jump skips the handler's return, so the mask of before is put back here: a sanitizer's own handler, which calls this
    // one, blocks every signal, and a second fault would then end the program.
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(*active, 1);
  }
  sigaction(SIGBUS, &previous, nullptr);  // not ours: the access repeats and meets whoever was there before
}

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
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
