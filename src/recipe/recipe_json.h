// A recipe as nested JSON objects with the same keys as its TOML.
#pragma once

#include <nlohmann/json.hpp>

#include "recipe/recipe.h"

namespace fairway {

nlohmann::ordered_json to_json_value(const Recipe& recipe);

}  // namespace fairway
