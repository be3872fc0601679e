// The model one token at a time: each step takes a new token of every row and gives the logits of the next, from keys and
// values kept since restart(). One program serves all positions, and a step allocates nothing.
#pragma once

#include <memory>
#include <span>

#include "autograd/executor.h"
#include "model/model.h"

namespace fairway {

class Decoder {
 public:
  // Reads `params` at every step; they must outlive it. At most `length` tokens between restarts.
  Decoder(const Recipe& recipe, const ParamStore& params, int64_t rows, int64_t length, ModelStage stage, Executor& executor);

  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }
  int64_t position() const { return position_; }  // tokens of each row since restart()

  void restart() { position_ = 0; }
  void step(std::span<const int32_t> tokens);        // one for each row
  std::span<const float> logits(int64_t row) const;  // (V) after the softcap, until the next step

  // Bytes of keys and values that one row needs.
  static size_t cache_bytes(const Recipe& recipe, int64_t length, ModelStage stage);

 private:
  void shift_window(std::span<const int32_t> tokens);

  int64_t rows_, length_, position_ = 0;
  Executor* executor_;
  Arena memory_;
  Tensor rope_;  // (T, R), every position
  DecodeInputs decode_;
  ModelInputs inputs_;
  ModelOutputs outputs_;
  std::unique_ptr<BoundProgram> program_;
};

}  // namespace fairway
