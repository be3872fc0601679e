#include "recipe/recipe.h"
#include <gtest/gtest.h>
TEST(Recipe, BuiltinsLoad) {
  for (const auto& b : fairway::builtin_recipes()) EXPECT_NO_THROW(fairway::load_recipe(b.name)) << b.name;
}
