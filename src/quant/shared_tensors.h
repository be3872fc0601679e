// Tensors quantized by several ranks: each does those of some Hessians, so that a factor is made once, and all get every part.
// What a tensor becomes does not depend on who quantizes it.
#pragma once

#include <span>

#include "comm/communicator.h"
#include "quant/quantize_model.h"

namespace fairway {

struct TensorJob {
  const TensorPlan* plan;
  std::vector<GridSetting> settings;
};

// A part for each setting of each job, in order. Collective.
std::vector<QuantizedPart> quantize_tensors(std::span<const TensorJob> jobs, const QuantRecipe& quant, OpRunner& runner,
                                            FactorCache& factors, Communicator& comm);

std::string to_bytes(const QuantizedPart& part);
QuantizedPart part_from_bytes(std::string_view bytes);

}  // namespace fairway
