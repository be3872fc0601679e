// The architecture inside an artifact: every key of [model] as a line "name=value", tables dotted. Names make a file readable
// after keys are added: an absent key is one that did not exist, and a feature is off by default.
#pragma once

#include <string>
#include <string_view>

#include "recipe/model_recipe.h"

namespace fairway {

std::string architecture_text(const ModelRecipe& model);
// Checked key by key and as a whole. InputError beginning with `where`.
ModelRecipe parse_architecture(std::string_view text, const std::string& where);

}  // namespace fairway
