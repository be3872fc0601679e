// How Fairway fails: bad input is the user's to mend (exit 2), failed work is ours (exit 1).
#pragma once

#include <stdexcept>
#include <string>

namespace fairway {

// Something the user gave is wrong: the sentence names the file, the place, the value and what was expected.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The work itself failed or a check did not hold (a NaN loss, a full disk, a golden case that differs).
class WorkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail_invariant(const char* file, int line, const char* condition, const std::string& sentence);

}  // namespace fairway

// A broken invariant is a bug of this program, never of its input; checked in release builds too.
#define FAIRWAY_ASSERT(condition, sentence)                                                \
  do {                                                                                     \
    if (!(condition)) ::fairway::fail_invariant(__FILE__, __LINE__, #condition, sentence); \
  } while (false)
