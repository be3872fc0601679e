// A recipe: everything that decides a run, as plain structs. Read from TOML (a file or a built-in name), changed by
// --set, checked as a whole, and dumped in one canonical form whose hash opens every run record.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/model_recipe.h"
#include "recipe/optim_recipe.h"
#include "recipe/score_recipe.h"
#include "recipe/train_recipe.h"

namespace fairway {

struct Recipe {
  DataRecipe data;
  ModelRecipe model;
  TrainRecipe train;
  OptimRecipe optim;
  AverageRecipe average;
  QuantRecipe quant;
  ScoreRecipe score;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.table("data", self.data, "training batches"_help);
    fields.table("model", self.model, "architecture"_help);
    fields.table("train", self.train, "length and pieces of the run"_help);
    fields.table("optim", self.optim, "optimizers"_help);
    fields.table("average", self.average, "weight averaging"_help);
    fields.table("quant", self.quant, "quantization"_help);
    fields.table("score", self.score, "scoring"_help);
  }
  bool operator==(const Recipe&) const = default;
};

// A built-in name or the path of a TOML file, then `key=value` overrides in order, then validate(). Throws InputError. A file
// may begin with `extends = "NAME or PATH"`, the path seen from its own folder: its keys then change that recipe, which may
// extend another one.
Recipe load_recipe(std::string_view name_or_path, std::span<const std::string> overrides = {});

// TOML text to a recipe, keys that are not given as in `defaults`; `source` names the text in errors. Does not validate().
// InputError when the text extends another.
Recipe parse_recipe(std::string_view text, std::string_view source, const Recipe& defaults = {});
// The two halves of a recipe that extends another: which one (empty: none), and its own keys on top of that one's.
std::string extended_by(std::string_view text, std::string_view source);
Recipe parse_layer(std::string_view text, std::string_view source, const Recipe& base);
void apply_override(Recipe& recipe, std::string_view key_equals_value);

// Refuses combinations that no run could use, with a sentence naming the keys and their values.
void validate(const Recipe& recipe, std::string_view source);

// Every key with its resolved value, in declaration order; parse_recipe gives the same recipe back.
std::string to_toml(const Recipe& recipe);
std::string recipe_hash(const Recipe& recipe);  // SHA-256 of to_toml, 64 hexadecimal digits

// Attention stays inside documents while it trains; scoring does so too unless score.documents says otherwise.
bool packs_documents(const Recipe& recipe);

// What measures progress once "auto" is resolved: time or steps.
ScheduleClock schedule_clock(const Recipe& recipe);

struct KeyInfo {
  std::string key, type, default_value, allowed, help;
};
std::vector<KeyInfo> recipe_keys();

struct BuiltinRecipe {
  std::string_view name, summary, text;  // summary: the file's first comment line
};
std::span<const BuiltinRecipe> builtin_recipes();

}  // namespace fairway
