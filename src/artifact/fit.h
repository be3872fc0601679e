// The best model that fits a byte budget (scoring spec §4.9, §5): the recipe's own setting where that fits, else bits spread by
// the allocator or levels of ±1 pruned, until the file as written is at or under the budget. Never truncation.
#pragma once

#include <functional>

#include "artifact/artifact.h"
#include "comm/communicator.h"
#include "quant/quantize_model.h"
#include "quant/tensor_moments.h"

namespace fairway {

struct FitRequest {
  const ParamStore& weights;
  const Recipe& recipe;
  const HessianStore* hessians = nullptr;
  Queue& queue;
  bool looped = false;
  std::string tokenizer;  // its identity, hexadecimal
  uint64_t budget = 0;    // bytes of the file
  CodecChoice codec = CodecChoice::rans;
  bool fill = false;  // spend what the recipe's setting leaves free
  std::function<void(const std::string&)> say{};
  std::function<TensorMoments()> moments{};  // asked for when bits have to be allocated; absent: by the recipe's sensitivities
  Communicator& comm = single_process();     // ranks share the quantizing; each gets the whole result
};

struct Fitted {
  QuantizedModel model;
  std::string bytes;  // the file
  Ledger ledger;
  QuantReport report;
  std::string method;          // "recipe", "allocator", "pruned"
  uint64_t natural_bytes = 0;  // of the recipe's own setting
  int64_t pruned = 0;
};

// InputError when not even the coarsest setting fits.
Fitted fit_model(const FitRequest& request);

}  // namespace fairway
