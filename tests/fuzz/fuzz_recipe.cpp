// Any text as a recipe: refused, or it reads back from its own dump. Overrides are taken from its lines.
#include "base/error.h"
#include "fuzz/targets.h"
#include "recipe/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  fairway::Recipe changed;
  for (size_t begin = 0, lines = 0; begin < size && lines < 8; ++lines) {
    const size_t end = std::min(text.find('\n', begin), size);
    try {
      apply_override(changed, text.substr(begin, end - begin));
    } catch (const fairway::InputError&) {}
    begin = end + 1;
  }
  try {
    const fairway::Recipe recipe = fairway::parse_recipe(text, "fuzz");
    if (!(fairway::parse_recipe(to_toml(recipe), "dump") == recipe)) std::abort();
    validate(recipe, "fuzz");
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds{"[model]\ndim = 64\nlayers=3\n", "model.dim=32\nquant.rule=rtn\ntrain.steps = 5\n"};
  for (const fairway::BuiltinRecipe& recipe : fairway::builtin_recipes()) seeds.emplace_back(recipe.text);
  return seeds;
}
