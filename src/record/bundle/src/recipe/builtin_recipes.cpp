// A record has its recipe in a file beside it.
#include "recipe/recipe.h"

namespace fairway {

std::span<const BuiltinRecipe> builtin_recipes() { return {}; }

}  // namespace fairway
