// The weights of a file by their names, whatever the file is: a checkpoint's tensors as they are, an artifact's integers with
// what makes weights of them. Shapes are known at once, values are made when they are asked for.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "interchange/lrzip.h"
#include "interchange/stored_tensor.h"

namespace fairway::interchange {

struct Weight {
  Extents shape;
  std::string stored_as;                       // "bf16", "gptq (int6)+lqer_asym"
  std::function<std::vector<float>()> values;  // row-major
};

struct WeightSet {
  std::string name;    // of the file
  std::string format;  // "PyTorch checkpoint"
  std::map<std::string, Weight> weights;
  std::map<std::string, std::string> metadata;  // of a .safetensors file
};

// Told by its content: .safetensors, what torch.save wrote, or a published artifact around that. InputErrors begin with `name`.
WeightSet read_weight_set(std::string bytes, const std::string& name, const Unlrzip& unlrzip = interchange::unlrzip);

}  // namespace fairway::interchange
