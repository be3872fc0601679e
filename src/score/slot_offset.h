// The arithmetic of SLOT (scoring spec §2.4): an offset δ (D) of the last hidden state, fitted by AdamW with a gradient in
// closed form. With u_j = E·h_j, z_j = cap·tanh((u_j + E·δ)/cap), p_j = softmax(z_j) and r = mean_j (p_j − onehot(y_j))·(1 −
// (z_j/cap)²), dCE/dδ = Eᵀ·r. No row of logits is computed twice and no product with h is needed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "score/distribution.h"
#include "tensor/tensor.h"

namespace fairway {

struct SlotRow {
  const float* logits = nullptr;  // u (V)
  int32_t target = 0;
};

class SlotOffset {
 public:
  SlotOffset(const Tensor& embedding, double cap, double learning_rate, ThreadPool& pool);  // E (V, D)

  void reset();                              // δ = 0, moments and step count too
  void step(std::span<const SlotRow> rows);  // one AdamW step on the rows' mean cross-entropy
  double loss(std::span<const SlotRow> rows);
  std::span<const float> gradient(std::span<const SlotRow> rows);  // at δ; for tests too

  // The target's score under z(u, δ), tilted.
  TargetScore score(const SlotRow& row, const Tilt& tilt, std::vector<float>* copy) const;

  // Everything that the next steps and scores depend on, for another rank to go on with.
  std::string state() const;
  void take_state(std::string_view bytes);

  std::span<float> delta() { return delta_; }
  void refresh();  // after delta() was changed by hand

 private:
  Tensor embedding_;
  int64_t vocab_, width_;
  float cap_;
  double learning_rate_;
  ThreadPool* pool_;
  int64_t steps_ = 0;
  std::vector<float> delta_, m_, v_, gradient_;
  std::vector<float> shift_;     // E·δ (V)
  std::vector<float> partials_;  // (kParts, V) sums of the residual over fixed parts of the rows
};

}  // namespace fairway
