// How far a quantized model's predictions lie from those of the weights it was made of: the mean KL divergence over rows of
// calibration text, in nats a token, and its gradient. What the expected damage cannot see (errors of layers that add up,
// weights that all shrink) is in it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "pack/calibrate.h"
#include "quant/quantized_model.h"

namespace fairway {

class KlDivergence {
 public:
  // text: rows of length + 1 tokens, of which the last `measured` tell the divergence and those before its gradient; both whole
  // passes. Every rank does all of it.
  KlDivergence(const CalibrationModel& model, std::span<const int32_t> text, int64_t length, int64_t measured);

  double of(const QuantizedModel& model);

  // The gradient, where rows were left for it: of the weights taken, as they are changed since, over other rows in each turn.
  // On a device only what is named moves between it and the host: gradients of some banks, weights that changed().
  bool has_gradient() const { return rows_ > measured_; }
  void take(const QuantizedModel& model);
  const ParamStore& weights() const { return params_; }
  void gradient(int64_t turn, std::span<const Tensor> of);
  void changed(std::span<const Tensor> weights);

  static constexpr int64_t kTogether = 8;  // rows of one pass

 private:
  std::unique_ptr<Session> open(bool backward);
  double run(Session& session, int32_t loss, int64_t first);
  void fill(int64_t first);
  void expect(int64_t first);  // what the trained weights predict

  Executor& executor_;
  const Recipe& recipe_;
  ModelStage stage_;
  int64_t rows_, measured_, length_;
  std::vector<int32_t> text_;
  ParamStore params_;
  Arena io_;
  ModelInputs inputs_;
  int32_t logits_ = -1, loss_ = -1, loss_with_gradient_ = -1;  // values of the programs
  std::unique_ptr<Session> forward_, both_;
  std::vector<float> expected_;    // (rows, length, V)
  std::vector<double> entropies_;  // of each pass, nats a token
};

}  // namespace fairway
