#include "interchange/weight_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "interchange/decompress.h"
#include "interchange/group_container.h"
#include "interchange/limits.h"
#include "interchange/little_endian.h"
#include "interchange/quantized_weights.h"
#include "interchange/torch_file.h"
#include "model/safetensors.h"

namespace fairway::interchange {
namespace {

constexpr std::string_view kZip{"PK\3\4", 4}, kXz{"\xFD"
                                                  "7zXZ\0",
                                                  6};
constexpr std::string_view kOldTorch = "\x80\x02\x8A\x0A";
constexpr char kZlib = 0x78;
constexpr std::string_view kNaiveBaseline = "__quant_format__";

Weight plain(const StoredTensor& tensor, const std::string& name, const std::string& file) {
  if (!is_real(tensor.type))
    throw InputError(file + ": tensor '" + name + "' is " + std::string(name_of(tensor.type)) + "; expected floating point");
  return {tensor.shape, std::string(name_of(tensor.type)), [tensor] { return floats_of(tensor); }};
}

struct SafetensorsType {
  std::string_view name;
  ElementType type;
};
constexpr std::array<SafetensorsType, 4> kSafetensorsTypes{
    {{"F32", ElementType::f32}, {"F64", ElementType::f64}, {"F16", ElementType::f16}, {"BF16", ElementType::bf16}}};

WeightSet from_safetensors(std::string bytes, const std::string& name) {
  const auto file = std::make_shared<const Safetensors>(Safetensors::parse(std::move(bytes), name));
  WeightSet out{.name = name, .format = "safetensors file", .weights = {}, .metadata = file->metadata()};
  for (const auto& stored : file->tensors()) {
    const std::string key = tensor_name(stored.first, name);
    const Tensor tensor = stored.second;
    const std::string& spelled = file->stored_type(key);
    const auto* type = std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                                    [&](const SafetensorsType& t) { return t.name == spelled; });
    if (type == kSafetensorsTypes.end())
      throw InputError(fmt::format("{}: tensor '{}' is {}; expected F32, F64, F16 or BF16", name, key, spelled));
    Extents shape(tensor.spec.shape.dims.begin(), tensor.spec.shape.dims.begin() + tensor.spec.shape.rank);
    require_elements(shape, "tensor '" + key + "'", name);
    StoredTensor view{type->type, shape, dense_strides(shape), nullptr, 0};
    // The file keeps the bytes; the string that a stored tensor points into is made when the values are.
    const auto values = [file, tensor, view] {
      StoredTensor copy = view;
      copy.bytes = std::make_shared<const std::string>(reinterpret_cast<const char*>(tensor.data), tensor.spec.bytes());
      return floats_of(copy);
    };
    out.weights.emplace(key, Weight{std::move(shape), std::string(name_of(type->type)), values});
  }
  return out;
}

// A state dict, or an artifact's {'w': tensors, 'm': kinds}; PGRP-1 spells 'r' for 'w' and adds 's', which its reader has used.
// Matrices of a group container come beside the file.
WeightSet from_torch(std::shared_ptr<const std::string> bytes, const std::string& name, StoredTensors matrices,
                     std::string format) {
  TorchFile file(std::move(bytes), name);
  const Pickle& pickle = file.pickle();
  WeightSet out{.name = name, .format = std::move(format), .weights = {}, .metadata = {}};
  std::map<std::string_view, PickleRef> top;
  for (const auto& [key, value] : pickle.members(pickle.top(), "what the file holds")) top.emplace(key, value);
  if (top.contains(kNaiveBaseline))
    pickle.refuse("an artifact of the naive baseline ('__quant_format__'), which is no recipe of Fairway's");
  const auto kinds = top.find("m");
  if (kinds == top.end() || pickle[kinds->second].kind != PickleValue::Kind::dict) {
    if (!matrices.empty()) pickle.refuse("has no 'm' that names its weights");
    for (const auto& [key, tensor] : file.tensors(pickle.top(), "what the file holds"))
      out.weights.emplace(key, plain(tensor, key, name));
    return out;
  }
  for (const auto& [key, value] : top) {
    if (key == "m" || (key == "s" && !matrices.empty())) continue;
    if (key != "w" && key != "r") pickle.refuse("holds '" + printable(key) + "' beside its tensors and kinds");
    for (auto& [tensor, stored] : file.tensors(value, "'" + std::string(key) + "'"))
      if (!matrices.emplace(tensor, std::move(stored)).second) pickle.refuse("holds the tensor '" + tensor + "' twice");
  }
  out.weights = quantized_weights(matrices, pickle, kinds->second);
  return out;
}

bool is_safetensors(std::string_view bytes) {
  return bytes.size() > 8 && (bytes[8] == '{' || bytes[8] == '[') && number_at<uint64_t>(bytes, 0) <= bytes.size();
}

}  // namespace

WeightSet read_weight_set(std::string bytes, const std::string& name, const Unlrzip& unlrzip) {
  if (is_safetensors(bytes) || std::string_view(name).ends_with(".safetensors"))
    return from_safetensors(std::move(bytes), name);
  if (is_group_container(bytes)) {
    GroupContainer container = read_group_container(bytes, name, unlrzip);
    return from_torch(container.rest, name, std::move(container.matrices),
                      "published artifact (PGRP-" + std::to_string(container.version) + ")");
  }
  if (bytes.starts_with(kZip))
    return from_torch(std::make_shared<const std::string>(std::move(bytes)), name, {}, "PyTorch checkpoint");
  if (bytes.empty()) throw InputError(name + ": is empty");
  if (bytes.starts_with(kOldTorch))
    throw InputError(name + ": saved in PyTorch's form before 1.6, a bare pickle; load it there and save it again");
  const uint64_t most = most_decompressed(bytes.size());
  const bool xz = bytes.starts_with(kXz), zlib = bytes[0] == kZlib;
  std::string plain_bytes;
  if (xz) {
    plain_bytes = decompress_xz(bytes, most, name);
  } else if (zlib) {
    plain_bytes = decompress_zlib(bytes, most, name);
  } else {
    try {
      plain_bytes = decompress_brotli(bytes, most, name);
    } catch (const InputError& error) {  // Brotli has no mark of its own
      throw InputError(std::string(error.what()) +
                       "; a file for import is a .safetensors file, what torch.save writes, or a published artifact");
    }
  }
  std::string format = std::string("published artifact (") + (xz ? "xz" : zlib ? "zlib" : "Brotli");
  if (is_shuffled(plain_bytes)) plain_bytes = unshuffled(plain_bytes, name), format += ", byte-shuffled";
  if (!plain_bytes.starts_with(kZip)) throw InputError(name + ": decompresses to something that torch.save did not write");
  return from_torch(std::make_shared<const std::string>(std::move(plain_bytes)), name, {}, format + ")");
}

}  // namespace fairway::interchange
