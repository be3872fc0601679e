#include "audit/isolation.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace fairway {
namespace {

// A limit of no descriptors: every open, socket and pipe of this process fails from now on. Those open already are closed.
void forbid_opening(int keep) {
  const long most = std::max(256L, sysconf(_SC_OPEN_MAX) > 4096 ? 4096L : sysconf(_SC_OPEN_MAX));
  for (int fd = 0; fd < most; ++fd)
    if (fd != keep) close(fd);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_NOFILE, &none);
}

[[noreturn]] void be_child(int out, const std::function<std::string()>& work) {
  forbid_opening(out);
  std::string text = "+";
  try {
    text += work();
  } catch (const std::exception& error) {
    text = std::string("-") + error.what();
  }
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(out, text.data() + written, text.size() - written);
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  _exit(0);
}

}  // namespace

std::string run_isolated(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) throw WorkError(std::string("no pipe for the isolated run (") + std::strerror(errno) + ")");
  const pid_t child = fork();
  if (child < 0) throw WorkError(std::string("no process for the isolated run (") + std::strerror(errno) + ")");
  if (child == 0) be_child(ends[1], work);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (text.empty() || text[0] != '+')
    throw WorkError("the isolated run failed: " + (text.empty() ? "no answer" : text.substr(1)));
  return text.substr(1);
}

}  // namespace fairway
