// The mean of the emulated ranks' clipped gradients, added as they come in the order of comm/tree.h. A stack of buffers holds
// the branches that are not complete yet: log2 of the ranks this process works through, and the newest. What ranks exchange in
// bf16 is rounded at every leaf and after every addition, so that each branch could have travelled.
#pragma once

#include <memory>
#include <vector>

#include "autograd/executor.h"
#include "optim/gradient_layout.h"

namespace fairway {

class MeanTree {
 public:
  struct Source {
    Tensor gradient;
    int64_t offset;  // in the mean
  };
  // Leaf i becomes factor·clip[0]·gradient, rounded, before it is added.
  struct Leaf {
    std::vector<Source> sources;
    int64_t elements = 0;  // of the mean; what no source covers is zero
    int64_t rounded = 0;   // to bf16, from the first element on
    Tensor clip;
    double factor = 1;
  };
  MeanTree(const Leaf& leaf, int64_t leaves, Executor& executor);

  void add(int64_t leaf);  // leaves in order; after the last one mean() is ready
  Tensor mean() const { return slots_.front(); }

 private:
  void carry();

  int64_t leaves_;
  Arena arena_;
  std::vector<Tensor> slots_;
  std::vector<std::unique_ptr<Session>> put_;  // gradient into slot i
  std::vector<std::unique_ptr<Session>> add_;  // slot i += slot i+1
  size_t height_ = 0;
};

}  // namespace fairway
