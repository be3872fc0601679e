// One line that tells how long work stands: redrawn in place on a terminal and cut to its width, elsewhere printed every ten
// seconds and, after the first minute, every minute.
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
  double begun_, last_ = 0;  // seconds
};

// At most `columns` characters of UTF-8; what was cut leaves "…".
std::string fitted(const std::string& line, size_t columns);

std::string duration_text(double seconds);  // "2m05s"
std::string quantity_text(double value);    // "1.23M"

}  // namespace fairway
