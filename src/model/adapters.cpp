#include "model/adapters.h"

#include "model/shape/model_shape.h"

namespace fairway {

std::vector<ParamInfo> adapter_table(const ModelRecipe& model, bool looped, int64_t rank) {
  const auto passes = static_cast<int64_t>(layer_order(model, looped).layers.size());
  const int64_t width = model.dim, kv = model.kv_dim();
  std::vector<ParamInfo> table;
  for (const auto& [site, out] : {std::pair<const char*, int64_t>{"q", width}, {"k", kv}, {"v", kv}}) {
    table.push_back({std::string("lora.") + site + ".a", {passes, width, rank}});
    table.push_back({std::string("lora.") + site + ".b", {passes, out, rank}});
  }
  for (const char* site : {"o", "mlp"}) {
    table.push_back({std::string("lora.") + site + ".a", {passes, rank, width}});
    table.push_back({std::string("lora.") + site + ".b", {passes, width, rank}});
  }
  table.push_back({"lora.head.a", {width, rank}});
  table.push_back({"lora.head.b", {model.vocab, rank}});
  return table;
}

}  // namespace fairway
