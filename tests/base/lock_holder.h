// A process of its own that writes in a folder until it is killed.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/writer_lock.h"

class LockHolder {
 public:
  explicit LockHolder(const std::filesystem::path& folder) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) hold(folder, ends[1]);
    ::close(ends[1]);
    char ready = 0;
    ready_ = ::read(ends[0], &ready, 1) == 1;
    ::close(ends[0]);
  }
  ~LockHolder() { kill(); }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  bool ready() const { return ready_; }
  pid_t pid() const { return pid_; }

 private:
  [[noreturn]] static void hold(const std::filesystem::path& folder, int tell) noexcept {
    const auto lock = fairway::WriterLock::of_folder(folder);
    if (::write(tell, "!", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }

  pid_t pid_ = -1;
  bool ready_ = false;
};
