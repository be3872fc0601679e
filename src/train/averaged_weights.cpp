#include "train/averaged_weights.h"

#include <cmath>

#include "base/error.h"
#include "model/safetensors.h"

namespace fairway {

void save_averaged(const std::filesystem::path& path, Trainer& trainer, ModelStage stage, int64_t step,
                   const RunIdentity& run) {
  const Tensor flat = trainer.averager().result();
  require_finite(flat, step);
  std::vector<NamedTensor> tensors;
  for (const ParamBank& bank : trainer.params().banks()) {
    tensors.push_back({bank.info.name, flat.part(bank.offset, bank.value.spec.shape), bank.info.shape.empty()});
  }
  std::map<std::string, std::string> metadata{{"average", trainer.averager().result_name()},
                                              {"looped", stage.looped ? "1" : "0"},
                                              {"recipe", run.recipe},
                                              {"step", std::to_string(step)}};
  if (!run.tokenizer.empty()) metadata["tokenizer"] = run.tokenizer;
  save_safetensors(path, tensors, metadata);
}

void require_finite(const Tensor& flat, int64_t step) {
  const float* values = flat.as<float>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (!std::isfinite(values[i]))
      throw WorkError("step " + std::to_string(step) + ": a weight is " + std::to_string(values[i]) + "; nothing was saved");
  }
}

}  // namespace fairway
