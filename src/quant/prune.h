// Zeroing levels of ±1 to shorten the coded integers (scoring spec §5): an ordered list of candidates, of which a search over
// the real size applies the first n.
#pragma once

#include "quant/quantize_model.h"

namespace fairway {

struct PruneCandidate {
  double score = 0;
  uint32_t tensor = 0;  // index into the model's tensors
  uint32_t index = 0;   // of the element
};

// Every ±1 of the layers' matrices of at most six bits, cheapest first, ties in order of tensor and index. PruneScore::step:
// s², as published. PruneScore::hessian: H_jj·(2·s·|w| − s²), the increase of GPTQ's loss with the weight as it was trained;
// H_jj is 1 where there is no Hessian.
std::vector<PruneCandidate> prune_candidates(const QuantizedModel& model, const ParamStore& weights, const Recipe& recipe,
                                             const HessianStore* hessians, PruneScore score);

void prune(QuantizedModel& model, std::span<const PruneCandidate> candidates);  // all that are given

// Makes the report of the model before it was pruned that of the model after.
void measure_pruned(const QuantizedModel& model, const ParamStore& weights, const Recipe& recipe, const HessianStore* hessians,
                    OpSite site, QuantReport& report);

}  // namespace fairway
