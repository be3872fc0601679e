// One forward pass of the model whose observe points feed Hessians (scoring spec §4.6). On a device the products XᵀX are part
// of the program and their sums stay there until they are asked for.
#pragma once

#include <map>
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

  // Adds XᵀX of every weight's inputs; the caller says when a batch ends. What a device has summed up comes with give(), which
  // begins anew.
  void run(std::span<const int32_t> tokens, std::span<const int32_t> segment_start, HessianStore& hessians);
  void give(HessianStore& hessians);

 private:
  struct OnDevice {
    explicit OnDevice(Program& program);
    Arena memory;
    Tensor all;                            // f64: every point's sums, one after another
    std::map<std::string, Tensor> points;  // (C, C), parts of it
    std::unique_ptr<BoundProgram> clear;
    bool used = false;
  };

  Executor* executor_;
  Arena io_;
  ModelInputs inputs_;
  std::unique_ptr<OnDevice> sums_;  // before the program that adds to them
  std::unique_ptr<BoundProgram> program_;
};

}  // namespace fairway
