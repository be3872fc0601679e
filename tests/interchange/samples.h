// The sample checkpoints beside this file, the goldens whose weights they hold, and the program run on them.
#pragma once

#include <filesystem>
#include <string>

#include "interchange/weight_set.h"
#include "model/safetensors.h"
#include "recipe/recipe.h"

namespace fairway::interchange {

std::string sample_path(const std::string& name);
std::string sample_bytes(const std::string& name);
// What torch.save wrote, of a sample that is xz, Brotli or plain.
std::string read_weight_bytes(const std::string& name);
WeightSet sample_set(const std::string& name);

Safetensors golden_file(const std::string& name);
Recipe golden_recipe(const std::string& golden);
// The sizes of a golden as a recipe file in `folder`.
std::string golden_recipe_file(const std::string& golden, const std::filesystem::path& folder);

// Which golden's sizes a sample has.
std::string golden_of(const std::string& sample);

// The reference's loss on the golden's tokens with the weights of the set.
double loss_with(const WeightSet& set, const std::string& golden, bool round_tables);

bool lrzip_is_installed();

}  // namespace fairway::interchange
