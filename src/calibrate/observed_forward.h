// One forward pass of the model whose observe points feed Hessians (scoring spec §4.6).
#pragma once

#include <memory>
#include <span>

#include "autograd/executor.h"
#include "model/model.h"
#include "quant/hessians.h"

namespace fairway {

class ObservedForward {
 public:
  struct Form {
    int64_t tokens = 0;      // M
    int64_t row_length = 0;  // T
    bool packed = false;     // documents begin at segment_start
  };
  // Reads `params` at every run; they must outlive it.
  ObservedForward(const Recipe& recipe, const ParamStore& params, const Form& form, ModelStage stage, Executor& executor);

  // Adds XᵀX of every weight's inputs; the caller says when a batch ends.
  void run(std::span<const int32_t> tokens, std::span<const int32_t> segment_start, HessianStore& hessians);

 private:
  Executor* executor_;
  Arena io_;
  ModelInputs inputs_;
  std::unique_ptr<BoundProgram> program_;
};

}  // namespace fairway
