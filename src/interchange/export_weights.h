// A model's weights under other people's names, for .safetensors files and for torch.load. Everything is f32: nothing is lost,
// and load_state_dict casts to what a script's parameters are.
#pragma once

#include <string>
#include <vector>

#include "interchange/published_names.h"
#include "model/param_store.h"
#include "model/safetensors.h"

namespace fairway::interchange {

std::vector<NamedTensor> named_tensors(const ParamStore& params, int64_t layers, NameStyle style);  // views

// The bytes of a .pt file with one dict. InputError, beginning with `name`, beyond the 4 GiB that fit without zip64.
std::string torch_file_of(const std::vector<NamedTensor>& tensors, const std::string& name);

}  // namespace fairway::interchange
