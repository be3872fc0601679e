// What `quantize` and `pack` share: the weights of a run and the Hessians the recipe wants for them.
#pragma once

#include <memory>
#include <optional>

#include "app/calibration.h"
#include "quant/quantize_model.h"

namespace fairway::app {

struct QuantizingFlags {
  std::string from, recipe, calibration, data, out;
  std::vector<std::string> overrides;
  int64_t tokens = 64 * 2048;
};
void add_quantizing_flags(CLI::App& command, QuantizingFlags& flags);

// The run's recipe with the flags' changes.
WeightSource open_quantizing(const QuantizingFlags& flags);

// InputError when the shards' tokenizer is another one than the weights were trained with.
struct QuantizingInput {
  ParamStore weights;
  std::optional<HessianStore> hessians;
  double calibration_seconds = 0;
  std::string tokenizer;  // identity by which an artifact remembers it; empty when neither weights nor data tell
  const HessianStore* found() const { return hessians ? &*hessians : nullptr; }
};
QuantizingInput prepare_quantizing(const WeightSource& source, const QuantizingFlags& flags, Machine& machine,
                                   Communicator& comm, bool quiet);

}  // namespace fairway::app
