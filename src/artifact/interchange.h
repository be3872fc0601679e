// Quantized models as plain weights, single precision, under the interchange names.
#pragma once

#include <map>
#include <string>

#include "model/safetensors.h"
#include "quant/quantized_model.h"

namespace fairway {

// As a weight file in memory; the metadata says whether the model is looped.
Safetensors to_safetensors(const QuantizedModel& model, const std::string& name);
std::map<std::string, std::string> interchange_metadata(const QuantizedModel& model);

}  // namespace fairway
