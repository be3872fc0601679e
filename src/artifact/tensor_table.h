// The table of an artifact: one line per tensor with a number for its parameter, its slice, sizes, coding and the rank of its
// correction. Sizes repeat what the architecture implies and must agree with it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quant/quantized_model.h"

namespace fairway {

std::string_view name_of(StreamRole role);
StreamRole stream_role(const QuantizedTensor& tensor, int64_t layers);

std::string encode_table(const std::vector<QuantizedTensor>& tensors);
// Tensors without their values, complete and in order for the model. InputError beginning with `where`.
std::vector<QuantizedTensor> decode_table(std::string_view bytes, const ModelRecipe& model, const std::string& where);

// Bytes that the values of these tensors take in memory.
uint64_t value_bytes(const std::vector<QuantizedTensor>& tensors);

}  // namespace fairway
