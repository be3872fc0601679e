// A bank by its name: tests state names of the spec, or of their own.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "model/param_store.h"

namespace fairway {

inline const ParamBank& bank_named(const ParamStore& store, std::string_view name) {
  const auto found =
      std::find_if(store.banks().begin(), store.banks().end(), [&](const ParamBank& bank) { return bank.info.name == name; });
  if (found == store.banks().end()) throw std::logic_error("no bank '" + std::string(name) + "'");
  return *found;
}

}  // namespace fairway
