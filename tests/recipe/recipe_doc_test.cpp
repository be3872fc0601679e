// docs/recipe.md is the key table in words. FAIRWAY_REWRITE_DOCS=1 build/bin/recipe_test writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "recipe/recipe.h"

namespace fairway {
namespace {

std::string document() {
  std::string text =
      "# Recipe keys\n\nWritten from the declarations in `src/recipe`; a test keeps it so. Every key has a default, and "
      "`--set key=value` changes one.\nA file that begins with `extends = \"pr1105\"` takes over every key of that recipe, "
      "built-in "
      "or a path seen from the file.\n";
  std::string table;
  for (const KeyInfo& info : recipe_keys()) {
    const size_t dot = info.key.rfind('.');
    if (info.key.substr(0, dot) != table) {
      table = info.key.substr(0, dot);
      text += fmt::format("\n## [{}]\n\n| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n", table);
    }
    text += fmt::format("| `{}` | {} | `{}` | {} | {} |\n", info.key.substr(dot + 1), info.type, info.default_value,
                        info.allowed, info.help);
  }
  return text;
}

TEST(RecipeDoc, FileEqualsTheDeclaredKeys) {
  const std::string path = FAIRWAY_SOURCE_DIR "/docs/recipe.md";
  if (std::getenv("FAIRWAY_REWRITE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << document();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream stored;
  stored << file.rdbuf();
  EXPECT_EQ(stored.str(), document()) << "run FAIRWAY_REWRITE_DOCS=1 build/bin/recipe_test --gtest_filter='RecipeDoc.*'";
}

}  // namespace
}  // namespace fairway
