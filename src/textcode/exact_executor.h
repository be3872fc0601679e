// Runs a decoding program of several rows over packed weights with the same bits on every machine, for any instruction set and
// any number of threads: who reads a compressed text must come to the very probabilities that its writer had. Products are
// exact in integers (grouped_rows.h). Attention, the softcap and products of floats go in the fixed order of exact_kernels.h;
// keys and values are kept in 16 bits (head_caches.h), not in the program's own memory for them. All other ops are the
// reference's, in double and one element after the other; the one function of theirs that is no basic operation is
// base/plain_math.h's. A row's numbers do not depend on the rows beside it. Of the head only the logits are made.
#pragma once

#include <deque>
#include <memory>

#include "autograd/host_executor.h"
#include "generate/packed_weights.h"
#include "textcode/head_caches.h"

namespace fairway::textcode {

class ProductScratch;  // textcode/exact_products.h

class ExactExecutor final : public Executor {
 public:
  ExactExecutor(const PackedWeights& weights, int64_t rows, Queue& queue);  // weights and queue must outlive it
  ~ExactExecutor() override;

  Backend backend() const override { return Backend::ref; }
  std::unique_ptr<Session> open(Recording recording, Arena* activations) override;
  void run_call(const BoundCall& call) override;  // FAIRWAY_ASSERT: programs run as a whole

 private:
  class Compiler;
  class ExactSession;

  const PackedWeights* weights_;
  int64_t rows_;
  Queue alone_{1};
  std::unique_ptr<ProductScratch> scratch_;
  std::deque<HeadCaches> caches_;  // one for each call of attention; the program's own stay untouched
  HeadScratch heads_;
};

}  // namespace fairway::textcode
