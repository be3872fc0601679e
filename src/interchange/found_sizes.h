// What a file's shapes tell of its model, as keys of a recipe; and a recipe near it made to fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interchange/published_names.h"
#include "interchange/weight_set.h"
#include "recipe/recipe.h"

namespace fairway::interchange {

struct Setting {
  std::string key;   // of a recipe
  std::string text;  // its value there
};

// The shape of the whole parameter as the file has it, a bank's matrices stacked; absent where none of it is there.
std::optional<Extents> found_shape(const WeightSet& set, ParamId id);

// Sizes that shapes tell. Those that cannot be told apart from others are left out.
std::vector<Setting> found_sizes(const WeightSet& set);

// What must change besides, in a recipe that is `near` with the sizes found: parts that the file does not have, and values that
// shapes do not tell (rotated channels, loops, lanes, layers with something of their own) where they do not go with the sizes.
std::vector<Setting> settings_that_follow(const WeightSet& set, const ModelRecipe& near, const Recipe& sized);

}  // namespace fairway::interchange
