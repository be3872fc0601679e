#include "app/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/output.h"
#include "comm/launch.h"
#include "pipeline/stages.h"

namespace fairway::app {
namespace {

std::vector<std::string>& words_given() {
  static std::vector<std::string> words;
  return words;
}

// What follows --color, as "--color never" or "--color=never"; the last one counts.
std::string colours_asked() {
  constexpr std::string_view kFlag = "--color";
  const std::vector<std::string>& words = words_given();
  std::string asked = "auto";
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == kFlag && i + 1 < words.size()) asked = words[i + 1];
    if (words[i].starts_with(std::string(kFlag) + "=")) asked = words[i].substr(kFlag.size() + 1);
  }
  return asked;
}

bool coloured(int stream) {
  const std::string asked = colours_asked();
  if (asked == "always" || asked == "never") return asked == "always";
  const char *refused = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  return (refused == nullptr || *refused == '\0') && terminal != nullptr && std::string_view(terminal) != "dumb" &&
         isatty(stream) != 0;
}

constexpr std::array<const char*, 5> kCodes{"", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m"};

// What the handler of a signal may read.
const char* farewell = "";
size_t farewell_length = 0;

void on_interrupt(int number) {
  (void)!::write(STDERR_FILENO, farewell, farewell_length);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void remember_command_line(int argc, char** argv) { words_given().assign(argv, argv + argc); }

const std::vector<std::string>& command_line() { return words_given(); }

bool has_word(std::string_view word) {
  const std::vector<std::string>& words = words_given();
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, word) != end;
}

std::string painted(const Pieces& pieces, int stream) {
  const bool colours = coloured(stream);
  std::string text;
  for (const Piece& piece : pieces) {
    const bool toned = colours && piece.tone != Tone::plain;
    text += toned ? kCodes[static_cast<size_t>(piece.tone)] + printable(piece.text) + "\x1b[0m" : printable(piece.text);
  }
  return text;
}

size_t terminal_columns(int stream, size_t otherwise) {
  winsize size{};
  return ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=,:+@%";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

GoesOn::GoesOn(const std::string& flag, bool quiet) {
  sigaction(SIGINT, nullptr, &before_);
  const Launch launch = find_launch();
  const bool knows_the_command = launch.kind == Launch::Kind::alone || (launch.kind == Launch::Kind::own && launch.rank == 0);
  if (quiet || !knows_the_command) return;
  std::vector<std::string> words = command_line();
  if (!flag.empty() && !has_word(flag)) words.insert(std::find(words.begin(), words.end(), "--"), flag);
  text_ = "to go on: " + printable(shell_line(words)) + "\n";
  if (before_.sa_handler == SIG_IGN) return;
  text_.insert(text_.begin(), '\n');  // below a progress line and the terminal's ^C
  farewell = text_.c_str();
  farewell_length = text_.size();
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

GoesOn::~GoesOn() {
  sigaction(SIGINT, &before_, nullptr);
  farewell_length = 0;
}

int GoesOn::told(int status) const {
  if (status == pipeline::kInterrupted) print_err(std::string_view(text_).substr(text_.starts_with('\n') ? 1 : 0));
  return status;
}

}  // namespace fairway::app
