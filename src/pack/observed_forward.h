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
  Executor* executor_;
  Arena io_;
  ModelInputs inputs_;
  std::map<std::string, int32_t> sums_;  // on a device: states of the session, by their points
  bool summed_ = false;
  std::unique_ptr<Session> session_;
};

}  // namespace fairway
