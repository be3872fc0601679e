// One line that tells how long work stands: redrawn in place on a terminal, printed now and then elsewhere.
#pragma once

#include <string>

namespace fairway {

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  bool due() const;                    // asked before composing a line: at most ten a second on a terminal
  void show(const std::string& line);  // draws it whether due or not
  void say(const std::string& line);   // a line that stays

 private:
  bool quiet_, terminal_, drawn_ = false;
  double last_ = 0;
  double interval_;  // seconds; elsewhere than on a terminal it grows with the length of the work
};

std::string duration_text(double seconds);  // "2m05s"
std::string quantity_text(double value);    // "1.23M"

}  // namespace fairway
