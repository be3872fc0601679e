#include "stages/requests.h"

#include <algorithm>

#include "recipe/recipe_json.h"

namespace fairway {
namespace {

using nlohmann::ordered_json;

// key=value for each key below `prefix` that is not at its default; an artifact does not hold the recipe's way of scoring.
void add_changes(const std::string& prefix, const ordered_json& have, const ordered_json& usual,
                 std::vector<std::string>& out) {
  for (const auto& [key, value] : have.items()) {
    if (value == usual[key]) continue;
    if (value.is_object())
      add_changes(prefix + key + ".", value, usual[key], out);
    else
      out.push_back(prefix + key + "=" + value.dump());
  }
}

}  // namespace

ScoreRequest score_request(const Recipe& recipe, const std::string& artifact, const std::string& data) {
  ScoreRequest score{.from = artifact, .data = data};
  score.mode = recipe.score.mode;
  score.context = recipe.score.context;
  if (recipe.score.mode.base != ScoreMode::plain) score.stride = std::min(recipe.score.stride, recipe.score.context);
  Recipe rest = recipe;  // what has no field of its own
  rest.score.mode = ScoreRecipe{}.mode;
  rest.score.context = ScoreRecipe{}.context;
  rest.score.stride = ScoreRecipe{}.stride;
  Recipe usual;
  usual.score.documents = packs_documents(recipe);  // an artifact says how it was trained
  add_changes("score.", to_json_value(rest)["score"], to_json_value(usual)["score"], score.overrides);
  return score;
}

}  // namespace fairway
