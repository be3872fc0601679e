// The model that fits a byte budget (scoring spec §4.9, §5), by the size of the file as written. Never truncation. Usually the
// best one: bits are spread over the tensors until the budget is full, with a trellis and without; of these the one is taken
// whose predictions are nearest to the trained weights'. Where the finest steps leave bytes free the recipe's own setting is
// among them. Or that setting alone, with the pruning it asks for.
#pragma once

#include <functional>

#include "artifact/artifact.h"
#include "base/lap_clock.h"
#include "comm/communicator.h"
#include "pack/divergence.h"
#include "quant/quantize_model.h"
#include "quant/tensor_moments.h"

namespace fairway {

struct FitRequest {
  const ParamStore& weights;
  const Recipe& recipe;
  const HessianStore* hessians = nullptr;
  OpSite site;
  bool looped = false;
  std::string tokenizer;  // its identity, hexadecimal
  uint64_t budget = 0;    // bytes of the file
  CodecChoice codec = CodecChoice::rans;
  bool as_published = false;  // the recipe's own setting
  std::function<void(const std::string&)> say{};
  std::function<TensorMoments()> moments{};                     // absent: damage is told by the recipe's sensitivities
  std::function<std::unique_ptr<KlDivergence>()> divergence{};  // absent: expected damage decides
  LapClock* laps = nullptr;                                     // told what took how long
  Communicator& comm = single_process();                        // ranks share the quantizing; each gets the whole result
};

struct Fitted {
  QuantizedModel model;
  CodedWeights weights;  // its integers as the file has them
  std::string bytes;     // the file
  Ledger ledger;
  QuantReport report;
  std::string method;          // "recipe", "allocator", "pruned"
  uint64_t natural_bytes = 0;  // of the recipe's own setting; 0: it was not made
  int64_t pruned = 0;
  double damage = 0;      // expected; nats a token where moments were given (quant/damage.h)
  double divergence = 0;  // measured, nats a token; 0: it was not
};

// InputError when nothing that may be taken fits.
Fitted fit_model(const FitRequest& request);

}  // namespace fairway
