// The model one token at a time: each step takes a new token of every row and gives the logits of the next, from keys and
// values kept since restart(). One program serves all positions, and a step allocates nothing.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "autograd/executor.h"
#include "model/model.h"

namespace fairway {

// Present: the program itself draws the next tokens, so that rows of text are made without the host.
struct Drawing {
  double temperature = 0.8;
};

class Decoder {
 public:
  // Reads `params` at every step; they must outlive it. At most `length` tokens between restarts.
  Decoder(const Recipe& recipe, const ParamStore& params, int64_t rows, int64_t length, ModelStage stage, Executor& executor,
          std::optional<Drawing> drawing = {});

  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }
  int64_t position() const { return position_; }  // tokens of each row since restart()
  const Tensor& rope() const { return rope_; }    // (T, R), every position: to be replaced before the first step

  void restart() { position_ = 0; }
  void step(std::span<const int32_t> tokens);        // one for each row
  std::span<const float> logits(int64_t row) const;  // (V) after the softcap, until the next step

  // With Drawing, instead of step(): text from one first token of each row on. Element t of a row's chances, (rows × length) in
  // [0, 1), draws its token t. draw_next() asks for one more token of every row and does not wait; text() does.
  bool draws() const { return chances_.present; }
  void begin_text(std::span<const int32_t> first, std::span<const double> chances);
  void draw_next();
  void wait() { executor_->wait(); }
  std::span<const int32_t> text();  // (rows, length), filled up to position()

  // Bytes of keys and values that one row needs.
  static size_t cache_bytes(const Recipe& recipe, int64_t length, ModelStage stage);

 private:
  void make_inputs(const Recipe& recipe, bool drawing);
  void shift_window(std::span<const int32_t> tokens);
  void put_inputs(std::span<const int32_t> tokens);

  int64_t rows_, length_, position_ = 0;
  Executor* executor_;
  Arena memory_;
  Tensor rope_;            // (T, R), every position
  Tensor chances_, text_;  // f64 and i32 (rows, length), only with Drawing
  DecodeInputs decode_;
  ModelInputs inputs_;
  ModelOutputs outputs_;
  std::unique_ptr<Session> session_;
};

}  // namespace fairway
