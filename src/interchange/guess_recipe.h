// Which built-in recipe a file's weights are of. Shapes decide; what they cannot tell (heads' rotation, loops, lanes) must then
// be the same in every recipe that fits.
#pragma once

#include <string>
#include <vector>

#include "interchange/weight_set.h"
#include "recipe/recipe.h"

namespace fairway::interchange {

struct GuessedRecipe {
  std::string name, why;
  Recipe recipe;
};
// Each built-in recipe with the overrides is tried. InputError where none fits, with the sizes found and what to give, or where
// those that fit are different models.
GuessedRecipe guess_recipe(const WeightSet& set, const std::vector<std::string>& overrides);

}  // namespace fairway::interchange
