// One forward and backward pass over a few sequences of L tokens that adds to a gradient of its own (scoring spec §2.5). The
// weights are shared; several passes may run at the same time if their gradients and activations lie apart.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "score/distribution.h"
#include "score/evaluator.h"
#include "score/sgd.h"

namespace fairway {

struct LearningSequence {
  std::span<const uint16_t> inputs, targets;  // one shorter than L is repeated until it fills a row
};

class LearningPass {
 public:
  struct Shape {
    int64_t rows = 1, length = 0;
    bool documents = false;  // attention begins at the last document start
    bool scored = false;     // rows can be read after forward()
  };
  // Gradients go to `gradient`, laid out as the store's flat gradients; those outside of `trainable` are not made at all.
  LearningPass(const ScoredModel& model, const ParamStore& params, const Shape& shape, const Tensor& gradient,
               std::span<const FlatRange> trainable);

  size_t activation_bytes() const { return recording_.program.arena_bytes; }
  void bind(Arena& activations) { activations_ = &activations; }  // before the first run
  int64_t rows() const { return shape_.rows; }
  // Adds share·d(mean loss). The sequences are as many as rows.
  void run(std::span<const LearningSequence> sequences, double share, Executor& executor);
  // The same in two parts, on the CPU; in between rows can be scored.
  void forward(std::span<const LearningSequence> sequences, Executor& executor);
  void backward(double share, Executor& executor);
  Distribution distribution(int64_t row) const;  // of row·L + position
  double nll(int64_t row) const;

 private:
  void fill(std::span<const LearningSequence> sequences);
  Session& session_on(Executor& executor);

  Shape shape_;
  int32_t bos_;
  std::unique_ptr<Arena> io_;
  ModelInputs inputs_;
  ModelOutputs outputs_;
  Recording recording_;
  Arena* activations_ = nullptr;
  std::map<const Executor*, std::unique_ptr<Session>> sessions_;  // one for each that ran it, all over the same memory
  const Session* scored_ = nullptr;                               // whose forward pass was the last
};

}  // namespace fairway
