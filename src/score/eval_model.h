// The model for evaluation: weights without gradients and a forward-only program of fixed shape.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "autograd/executor.h"
#include "model/model.h"

namespace fairway {

struct EvalOptions {
  int64_t head_rows = 0;     // N: the head runs on so many rows of the batch, named in head_rows(); 0: on all of them
  bool segments = false;     // attention begins at segment_start()
  bool raw_head = false;     // logits() are those before the softcap; there is no nll
  bool losses_only = false;  // there are no logits()
};

class EvalModel {
 public:
  EvalModel(const Recipe& recipe, int64_t rows, int64_t row_length, ModelStage stage, Executor& executor);
  // Over weights of somebody else, which may change between runs.
  EvalModel(const Recipe& recipe, int64_t rows, int64_t row_length, ModelStage stage, Executor& executor,
            const std::shared_ptr<ParamStore>& params, const EvalOptions& options = {});

  int64_t rows() const { return rows_; }              // B
  int64_t row_length() const { return row_length_; }  // T
  ParamStore& params() { return *params_; }

  std::span<int32_t> tokens() const { return indices(inputs_.tokens); }
  std::span<int32_t> targets() const { return indices(inputs_.targets); }
  std::span<int32_t> head_rows() const { return indices(inputs_.head_rows); }
  std::span<int32_t> segment_start() const { return indices(inputs_.segment_start); }
  void run();
  void run_losses();  // run(), of which only nll() is brought to the host
  void run(const Observer& observer);
  std::span<const float> nll() const;                // (N) nats, after run()
  std::span<const float> logits(int64_t row) const;  // (V) after the softcap, of one position
  std::span<const float> lse() const;                // (N) log-sum-exp of each row's logits

 private:
  static std::span<int32_t> indices(const Tensor& tensor);
  std::span<const float> values(Var value) const;
  void send_inputs();
  void fetch_results();

  int64_t rows_, row_length_;
  Executor* executor_;
  std::shared_ptr<ParamStore> params_;
  Arena io_;
  ModelInputs inputs_;
  ModelOutputs outputs_;
  std::unique_ptr<Session> session_;
};

}  // namespace fairway
