#include "artifact/interchange.h"

#include <cstring>

#include "model/shape/model_shape.h"
#include "quant/quantize_model.h"

namespace fairway {
std::map<std::string, std::string> interchange_metadata(const QuantizedModel& model) {
  std::map<std::string, std::string> metadata{{"looped", model.looped ? "1" : "0"}};
  if (!model.recipe_hash.empty()) metadata["recipe_hash"] = model.recipe_hash;
  if (!model.tokenizer.empty()) metadata["tokenizer"] = model.tokenizer;
  return metadata;
}

Safetensors to_safetensors(const QuantizedModel& model, const std::string& name) {
  std::vector<NamedTensor> tensors;
  for (const ParamInfo& info : parameter_table(model.model)) {
    Shape shape;
    for (const int64_t extent : info.shape) shape.dims[shape.rank++] = extent;
    if (info.shape.empty()) shape = Shape{1};
    tensors.push_back({info.name, Tensor{nullptr, {shape, DType::f32}}, info.shape.empty()});
  }
  std::string bytes = safetensors_header(tensors, interchange_metadata(model));
  for (const QuantizedTensor& tensor : model.tensors) {  // slices of a parameter follow one another
    std::vector<float> values(static_cast<size_t>(tensor.count()));
    dequantize(tensor, values);
    bytes.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  }
  return Safetensors::parse(std::move(bytes), name);
}

}  // namespace fairway
