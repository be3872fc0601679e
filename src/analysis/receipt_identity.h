// What a receipt says it is the receipt of, for base/identity.h.
#pragma once

#include <nlohmann/json.hpp>

#include "base/identity.h"

namespace fairway {

// Fields that are missing or of another type are not told.
Identities receipt_identities(const nlohmann::ordered_json& receipt, std::string by);

// Several files as one: the hash of their hashes; "none" of none.
std::string files_identity(const std::vector<std::string>& hashes);

// "an artifact" or "weights as trained".
std::string form_identity(bool packed);

}  // namespace fairway
