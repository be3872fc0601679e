#include "base/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "base/error.h"

namespace fairway {
namespace {

[[noreturn]] void lose_output() {
  const int reason = errno;
  std::clearerr(stdout);  // told once
  throw WorkError(std::string("standard output cannot be written (") + std::strerror(reason) + "); the result is incomplete");
}

}  // namespace

void guard_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free descriptor, which is fd; opened the wrong way round, so that using it fails as it did when closed.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]),
               next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool two = c == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F, which terminals obey too
    if (two || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
      const unsigned char code = two ? next : c;
      out += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
      i += two ? 1 : 0;
    } else {
      out += text[i];
    }
  }
  return out;
}

void print_out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) lose_output();
}

void print_err(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void require_output_written() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) != 0 || !std::cout || std::ferror(stdout) != 0) lose_output();
}

}  // namespace fairway
