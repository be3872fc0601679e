#include "base/error.h"

namespace fairway {

void fail_invariant(const char* file, int line, const char* condition, const std::string& sentence) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " + sentence + " (" + condition + ")");
}

}  // namespace fairway
