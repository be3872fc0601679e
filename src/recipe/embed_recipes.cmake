# cmake -DOUT=file.cpp -DFOLDER=recipes "-DNAMES=a;b" -P embed_recipes.cmake: writes the recipes as C++ string literals.
set(entries "")
foreach(name ${NAMES})
  file(READ ${FOLDER}/${name}.toml text)
  string(REGEX MATCH "^# ([^\n]*)" ignored "${text}")
  set(summary "${CMAKE_MATCH_1}")
  string(APPEND entries "    {R\"~(${name})~\", R\"~(${summary})~\", R\"~(${text})~\"},\n")
endforeach()
file(WRITE ${OUT} "// Written by src/recipe/embed_recipes.cmake from recipes/*.toml.
#include \"recipe/recipe.h\"

namespace fairway {
namespace {
constexpr BuiltinRecipe kBuiltin[] = {
${entries}};
}  // namespace
std::span<const BuiltinRecipe> builtin_recipes() { return kBuiltin; }
}  // namespace fairway
")
