#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "app/writer.h"
#include "base/error.h"
#include "base/output.h"

namespace fairway::app {
namespace {

volatile std::sig_atomic_t noted = 0;
int bell[2] = {-1, -1};  // a pipe: rung by the handler, heard by whoever waits for input, on whichever thread the signal came

// Ctrl-C is noted while this lives; then the old handler returns.
class Interrupts {
 public:
  Interrupts() {
    if (pipe2(bell, O_NONBLOCK | O_CLOEXEC) != 0) throw WorkError("cannot create a pipe for the prompt");
    struct sigaction action {};
    action.sa_handler = [](int) {
      noted = 1;
      if (write(bell[1], "!", 1) < 0) return;  // a full pipe has been rung already
    };
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &old_);
  }
  ~Interrupts() {
    sigaction(SIGINT, &old_, nullptr);
    close(bell[0]), close(bell[1]);
  }
  Interrupts(const Interrupts&) = delete;

  static void forget() {
    char rings[64];
    while (read(bell[0], rings, sizeof rings) > 0) {}
    noted = 0;
  }

 private:
  struct sigaction old_ {};
};

enum class Typed : uint8_t { text, end, interrupt };

class Lines {
 public:
  Typed next(std::string& line) {
    for (;;) {
      if (const size_t end = pending_.find('\n'); end != std::string::npos) {
        line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return Typed::text;
      }
      pollfd from[2] = {{STDIN_FILENO, POLLIN, 0}, {bell[0], POLLIN, 0}};
      if (poll(from, 2, -1) < 0 && errno == EINTR) continue;
      if (from[1].revents != 0) return Typed::interrupt;
      char buffer[4096];
      const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
      if (count <= 0) return Typed::end;
      pending_.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  std::string pending_;
};

}  // namespace

int run_prompt_loop(const TextModel& model, TextRequest flags) {
  const Interrupts interrupts;
  Lines lines;
  print_out("type a line to continue; Ctrl-C stops a text, Ctrl-D ends\n");
  for (;;) {
    print_out("> ");
    const Typed line = lines.next(flags.prompt);
    if (line != Typed::text) {
      print_out("\n");
      return line == Typed::end ? 0 : 130;
    }
    print_out(flags.prompt);
    const Written written = write_text(model, flags, [](const std::string& piece) {
      print_out(piece);
      return noted == 0;
    });
    Interrupts::forget();
    print_out(fmt::format("\n[{} tokens, {:.0f} tokens/s]\n", written.tokens.size(), written.rate));
  }
}

}  // namespace fairway::app
