// Unfinished Hessians in a safetensors file (RUN/hessians.safetensors): the lower triangle of every sum as f32, with the number
// of batches and the step they stand for. Online calibration writes it during training; quantizing reads it.
#pragma once

#include <filesystem>
#include <string>

#include "quant/hessians.h"
#include "recipe/recipe.h"

namespace fairway {

struct HessianState {
  int64_t step = 0;         // of training, up to which the sums go
  int64_t passes = 0;       // over micro-batches, all counted
  std::string recipe_hash;  // of the run
};

void save_hessians(const std::filesystem::path& path, const HessianStore& hessians, const HessianState& state);

// Puts a file's sums into an empty store. InputError when the file belongs to another recipe, lacks a weight's Hessian or is
// not what save_hessians writes.
HessianState load_hessians(const std::filesystem::path& path, const Recipe& recipe, HessianStore& hessians);

}  // namespace fairway
