// What `quantize` and `pack` share: the weights of a run and the Hessians the recipe wants for them.
#pragma once

#include <memory>
#include <optional>

#include "quant/quantize_model.h"
#include "stages/calibration.h"
#include "stages/requests.h"

namespace fairway {

// The run's recipe with the request's changes.
WeightSource open_quantizing(const QuantizeRequest& request);

// InputError when the shards' tokenizer is another one than the weights were trained with.
struct QuantizingInput {
  std::optional<HessianStore> hessians;
  OwnText text;  // that they were made of, where it was the model's own
  double calibration_seconds = 0;
  std::string tokenizer;        // identity by which an artifact remembers it; empty when neither weights nor data tell
  std::string tokenizer_model;  // its file; empty when the data has none
  const HessianStore* found() const { return hessians ? &*hessians : nullptr; }
};
// own: the text of Calibration::self, unless the request says how many tokens.
QuantizingInput prepare_quantizing(const WeightSource& source, const QuantizeRequest& request, SelfCalibration own,
                                   Machine& machine, Communicator& comm, bool quiet);

}  // namespace fairway
