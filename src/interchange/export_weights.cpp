#include "interchange/export_weights.h"

#include "base/error.h"
#include "interchange/torch_writer.h"

namespace fairway::interchange {
namespace {

constexpr uint64_t kMostTorchBytes = 4'000'000'000;
constexpr const char* kFolder = "archive";  // as torch.save to a buffer names it

}  // namespace

std::vector<NamedTensor> named_tensors(const ParamStore& params, int64_t layers, NameStyle style) {
  std::vector<NamedTensor> out;
  for (const ParamBank& bank : params.banks()) {
    for (TensorPlace& place : tensor_places(bank.info, layers, style)) {
      Shape shape{1};
      if (!place.shape.empty()) {
        shape.rank = static_cast<uint8_t>(place.shape.size());
        std::copy(place.shape.begin(), place.shape.end(), shape.dims.begin());
      }
      out.push_back({std::move(place.name), bank.value.part(place.begin, shape), place.shape.empty()});
    }
  }
  return out;
}

std::string torch_file_of(const std::vector<NamedTensor>& tensors, const std::string& name) {
  uint64_t bytes = 0;
  for (const NamedTensor& entry : tensors) bytes += entry.tensor.spec.bytes();
  if (bytes > kMostTorchBytes)
    throw InputError(name + ": " + std::to_string(bytes) +
                     " bytes of weights do not fit into a .pt file of 4 GiB; write a .safetensors file");
  TorchWriter writer(kFolder);
  writer.begin_dict();
  for (const NamedTensor& entry : tensors) {
    const Shape& shape = entry.tensor.spec.shape;
    writer.text(entry.name);
    writer.tensor(ElementType::f32, entry.scalar ? Extents{} : Extents(shape.dims.begin(), shape.dims.begin() + shape.rank),
                  {reinterpret_cast<const char*>(entry.tensor.data), entry.tensor.spec.bytes()});
  }
  writer.end_dict();
  return std::move(writer).finish();
}

}  // namespace fairway::interchange
