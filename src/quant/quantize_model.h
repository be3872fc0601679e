// From averaged weights to a QuantizedModel, tensor by tensor as the recipe's [quant] says (scoring spec §4).
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "comm/communicator.h"
#include "quant/gptq.h"
#include "quant/quantized_model.h"
#include "quant/tensor_moments.h"
#include "quant/tensor_plan.h"

namespace fairway {

struct TensorReport {
  std::string name;
  TensorCoding coding = TensorCoding::half;
  int bits = 16;
  std::string scale_rule;  // "sdclip 12.85", "percentile 0.9995", "half"
  double mean_square = 0;  // of W − dequantized
  double loss = 0;         // tr(D·H·Dᵀ), of outputs that make up for each other tr(G·D·H·Dᵀ); 0 without a Hessian
  double counted = 0;      // the same or, without a Hessian, the squares of D; rows as the loss depends on them
  double entropy = 16;     // of the integers, bits per weight
  bool weighted = false;   // there was a Hessian
  bool gptq = false;
  std::string fallback;  // why GPTQ was wanted but rounding was done; empty otherwise
  int damping_retries = 0;
  bool corrected = false;  // by a low-rank term
};

struct QuantReport {
  std::vector<TensorReport> tensors;           // in the order of the model's
  std::vector<std::string> fallbacks() const;  // sentences, for the terminal
};

// Factors of the Hessians, made when first asked for and kept: Q, K and V, and every clip tried, share one.
class FactorCache {
 public:
  enum class Steps : uint8_t { alike, by_column };  // the latter in layers' matrices
  // moments: of tables and projections, whose rows' gradients then stand for inputs.
  FactorCache(OpRunner& runner, const HessianStore* hessians, const QuantRecipe& quant, Steps steps = Steps::alike,
              const TensorMoments* moments = nullptr);
  const Hessian* hessian(const TensorPlan& plan) const;  // null: absent
  const GptqFactor* factor(const TensorPlan& plan);      // null: no Hessian
  const OutputFactor* outputs(const TensorPlan& plan);   // null: its outputs do not make up for each other

 private:
  OpRunner* runner_;
  const HessianStore* hessians_;
  const TensorMoments* moments_;
  Damping damping_;
  Steps steps_;
  std::map<std::string, GptqFactor> factors_;
  std::map<std::pair<std::string, int64_t>, OutputFactor> outputs_;  // of a tensor, and of one row in so many of it
};

struct QuantizedPart {
  QuantizedTensor tensor;
  TensorReport report;
};
// One tensor on the grid of `setting`; `scale` is the rule for it.
QuantizedPart quantize_tensor(const TensorPlan& plan, const GridSetting& setting, const QuantRecipe& quant, OpRunner& runner,
                              FactorCache& factors);

// The same tensor on each of these grids: one after the other, or at once where that is faster.
std::vector<QuantizedPart> quantize_tensor(const TensorPlan& plan, std::span<const GridSetting> settings,
                                           const QuantRecipe& quant, OpRunner& runner, FactorCache& factors);

// What the tensor as it stands loses, into the report: for integers that were changed after they were rounded. Without a
// Hessian the error is the plain one alone.
void measure(const TensorPlan& plan, const QuantizedTensor& tensor, OpRunner& runner, const Hessian* hessian,
             TensorReport& report);

// hessians: finished, or null. GPTQ without a usable Hessian rounds instead and says so in the report. Several ranks share the
// tensors; each gets the whole model.
QuantizedModel quantize_model(const ParamStore& weights, const Recipe& recipe, const HessianStore* hessians, OpSite site,
                              QuantReport& report, Communicator& comm = single_process());
// The same with factors that the caller keeps.
QuantizedModel quantize_model(const ParamStore& weights, const Recipe& recipe, const HessianStore* hessians, OpRunner& runner,
                              FactorCache& factors, QuantReport& report, Communicator& comm);

// W = s·q + A·B in half, single or integers, exactly the same on every machine.
void dequantize(const QuantizedTensor& tensor, std::span<float> out);
// Fills the store, whose table must be that of the model; InputError when a tensor is missing or has another shape.
void dequantize(const QuantizedModel& model, ParamStore& out, ThreadPool* pool = nullptr);

// Order-0 entropy of the integers and what the scales, halves and corrections take besides: the size of an ideal static coder.
// Bits, all values together; under a trellis each is known to be even or odd.
double entropy_of(std::span<const int8_t> q, bool trellis = false);
double estimated_bits(const QuantizedTensor& tensor);
double estimated_bits(const QuantizedPart& part);  // by the entropy that its report knows already
double estimated_bits(const QuantizedModel& model);

}  // namespace fairway
