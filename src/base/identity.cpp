#include "base/identity.h"

#include <fmt/core.h>

#include "base/error.h"

namespace fairway {

void require_identity(std::string_view what, const Identity& have, const Identity& made_with, std::string_view remedy) {
  constexpr size_t kShown = 12;
  if (have.hash.empty() || made_with.hash.empty() || have.hash == made_with.hash) return;
  throw InputError(fmt::format("{}: this {} (SHA-256 {}…) is not the one that {} was made with ({}…); {}", have.by, what,
                               have.hash.substr(0, kShown), made_with.by, made_with.hash.substr(0, kShown), remedy));
}

}  // namespace fairway
