// SGD with momentum on the parts of a parameter store that may learn (scoring spec §2.5): the gradient is clipped as a whole,
// buf = μ·buf + g, w −= lr·buf. Recorded as programs, so that on a device nothing but the learning rate comes from the host.
#pragma once

#include <memory>
#include <vector>

#include "autograd/executor.h"
#include "model/param_store.h"

namespace fairway {

struct FlatRange {
  int64_t begin, end;  // elements of the flat tensors
};

// Everything but the first `frozen_blocks` blocks: their vectors stay, and under `intent` their slices of the banks too.
std::vector<FlatRange> trainable_ranges(const ParamStore& params, const ModelRecipe& model, int64_t frozen_blocks,
                                        FreezeSemantics semantics);

class MaskedSgd {
 public:
  struct Settings {
    double momentum = 0;
    double clip = 0;  // 0: none
  };
  // `gradient` lies as the store's flat values do.
  MaskedSgd(const ParamStore& params, const Tensor& gradient, const std::vector<FlatRange>& trainable, const Settings& settings,
            Executor& executor);
  void reset();  // momentum to zero
  void step(double learning_rate);

 private:
  Executor* executor_;
  Arena state_;
  Tensor buffer_, rate_;
  std::unique_ptr<Session> zero_, step_;
};

}  // namespace fairway
