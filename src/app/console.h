// How the program speaks to a person: colours where they are wanted, and after Ctrl-C the command that goes on.
#pragma once

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

namespace fairway::app {

// One meaning each: of a heading (bold), of what held (green), of what should be mended (yellow), of what failed (red).
enum class Tone : unsigned char { plain, heading, good, warning, bad };

struct Piece {
  std::string text;
  Tone tone = Tone::plain;
};
using Pieces = std::vector<Piece>;

// Called once, first: the words of the command line. `--color always|never` among them decides about colours; otherwise a
// stream has them if it is a terminal, NO_COLOR is not set (no-color.org) and TERM is not "dumb".
void remember_command_line(int argc, char** argv);
const std::vector<std::string>& command_line();
bool has_word(std::string_view word);  // of the command line, before any "--"

// The pieces one after the other, each made printable, for a stream (STDOUT_FILENO, STDERR_FILENO).
std::string painted(const Pieces& pieces, int stream);

size_t terminal_columns(int stream, size_t otherwise);

// Words as a shell takes them.
std::string shell_line(const std::vector<std::string>& words);

// While it lives, Ctrl-C outside of what saves by itself ends the program as ever, but first tells the command that goes on
// from there: this one, with `flag` if that is not among its words. Not for --quiet, nor for ranks of another launcher, whose
// command is unknown.
class GoesOn {
 public:
  GoesOn(const std::string& flag, bool quiet);
  ~GoesOn();
  GoesOn(const GoesOn&) = delete;
  int told(int status) const;  // the same for work that saved and ended with 130; returns the status

 private:
  std::string text_;
  struct sigaction before_ {};
};

}  // namespace fairway::app
