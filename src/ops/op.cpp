#include "ops/op.h"

#include "base/error.h"

namespace fairway {

void require(bool condition, std::string_view op, const std::string& sentence) {
  if (!condition) throw InputError("[" + std::string(op) + "] " + sentence);
}

}  // namespace fairway
