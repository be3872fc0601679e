// Safetensors files: an 8-byte header length, a JSON header, then the tensors' bytes. The reader trusts nothing in the file:
// sizes are checked for overflow, tensors must tile the data exactly (no overlap, no holes), keys must be unique.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace fairway {

inline constexpr uint64_t kMostSafetensorsBytes = uint64_t{64} << 30;  // of a file that is read

class Safetensors {
 public:
  static Safetensors read(const std::filesystem::path& path);
  static Safetensors parse(std::string bytes, const std::string& name);

  bool has(const std::string& tensor) const { return tensors_.contains(tensor); }
  Tensor get(const std::string& tensor) const;                      // a view; InputError when it is absent
  const std::string& stored_type(const std::string& tensor) const;  // as the file spells it; halves ("F16") are viewed as u16
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<std::byte> aligned_;  // tensor data, 8-byte aligned
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> types_, metadata_;
};

// InputError naming file, tensor and place of the first float that is NaN or infinite.
void require_finite_tensors(const Safetensors& file);

struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool scalar = false;  // written with shape []
};
// The bytes before the data: tensors follow in the given order, without gaps.
std::string safetensors_header(const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& metadata);
// Header and data to a file that appears whole or not at all.
void save_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                      const std::map<std::string, std::string>& metadata);

}  // namespace fairway
