// The model for evaluation: weights without gradients and a forward-only program of fixed shape.
#pragma once

#include <memory>
#include <span>

#include "autograd/executor.h"
#include "model/model.h"
#include "params/safetensors.h"

namespace fairway {

// By interchange names; InputError where a tensor is absent or has another shape.
void load_weights(const ParamStore& params, const Safetensors& file);

class EvalModel {
 public:
  EvalModel(const Recipe& recipe, int64_t rows, int64_t row_length, ModelStage stage, Executor& executor);

  int64_t rows() const { return rows_; }              // B
  int64_t row_length() const { return row_length_; }  // T
  ParamStore& params() { return params_; }
  void load(const Safetensors& file) { load_weights(params_, file); }

  std::span<int32_t> tokens() const { return {inputs_.tokens.as<int32_t>(), static_cast<size_t>(rows_ * row_length_)}; }
  std::span<int32_t> targets() const { return {inputs_.targets.as<int32_t>(), static_cast<size_t>(rows_ * row_length_)}; }
  void run() { executor_->run(*program_); }
  void run(const Observer& observer) { executor_->run(*program_, observer); }
  std::span<const float> nll() const;                // (B·T) nats, after run()
  std::span<const float> logits(int64_t row) const;  // (V) after the softcap, of one position

 private:
  int64_t rows_, row_length_;
  Executor* executor_;
  ParamStore params_;
  Arena io_;
  ModelInputs inputs_;
  ModelOutputs outputs_;
  std::unique_ptr<BoundProgram> program_;
};

// The `looped` mark that a run leaves in its weights; without one, looped if the recipe loops at all.
bool stored_looped(const Safetensors& file, const Recipe& recipe);

}  // namespace fairway
