// SGD with momentum on the parts of a parameter store that may learn (scoring spec §2.5): the gradient is clipped as a whole,
// buf = μ·buf + g, w −= lr·buf.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "params/param_store.h"

namespace fairway {

struct FlatRange {
  int64_t begin, end;  // elements of the flat tensors
};

// Everything but the first `frozen_blocks` blocks: their vectors stay, and under `intent` their slices of the banks too.
std::vector<FlatRange> trainable_ranges(const ParamStore& params, const ModelRecipe& model, int64_t frozen_blocks,
                                        FreezeSemantics semantics);

class MaskedSgd {
 public:
  MaskedSgd(ParamStore& params, const std::vector<FlatRange>& trainable, double momentum, double clip, ThreadPool& pool);
  void reset();  // momentum to zero
  void clear_gradients();
  void step(double learning_rate);

 private:
  ParamStore* params_;
  std::vector<FlatRange> pieces_;  // of bounded size, so that work splits the same way on any number of threads
  double momentum_, clip_;
  ThreadPool* pool_;
  std::vector<float> buffer_;
};

}  // namespace fairway
