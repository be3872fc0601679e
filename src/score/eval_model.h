// The model for evaluation: weights without gradients and a forward-only program of fixed shape. The bits of a row do not
// depend on how many rows there are.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "autograd/executor.h"
#include "model/model.h"
#include "score/distribution.h"

namespace fairway {

// What comes to the host of each row that the head runs on.
enum class EvalRows : uint8_t {
  losses,         // its target's NLL
  records,        // NLL and digest of the distribution, made where the logits are
  distributions,  // NLL and the distribution itself
};

struct EvalOptions {
  int64_t head_rows = 0;  // N: the head runs on so many rows of the batch, named in head_rows(); 0: on all of them
  bool segments = false;  // attention begins at segment_start()
  // A head of the caller's in place of the model's: nll, logits and lse of rows of its own from the normed hidden state (N, D)
  // and the table. It has targets of its own.
  std::function<ModelOutputs(Tape& tape, Var hidden, Var table)> head{};
  EvalRows rows = EvalRows::distributions;
  std::optional<double> damping;  // records are of rows tilted by hints(), this the tilt's damping
};

// Losses and digests of a run on their way to the host, while the model may already work on the next.
class EvalRecords {
 public:
  explicit EvalRecords(Executor& executor) : nll_(executor.open_delivery()), digest_(executor.open_delivery()) {}
  void receive();                        // waits until they are there
  TargetScore score(int64_t row) const;  // of what was received

 private:
  friend class EvalModel;
  std::unique_ptr<Delivery> nll_, digest_;
  bool with_digests_ = false;
  std::vector<int32_t> targets_, hints_;  // of tilted rows, as they were sent
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
  size_t planned_bytes() const { return session_->program().arena_bytes; }  // of a run, in float

  std::span<int32_t> tokens() const { return indices(inputs_.tokens); }
  std::span<int32_t> targets() const { return indices(inputs_.targets); }
  std::span<int32_t> head_rows() const { return indices(inputs_.head_rows); }
  std::span<int32_t> segment_start() const { return indices(inputs_.segment_start); }
  void set_hint(int64_t row, const Hint& hint);  // of a row that the head runs on; of tilted records
  void run();
  void run(const Observer& observer);
  void run(EvalRecords& to);  // sends losses and records; does not wait
  // After run(), as far as EvalRows has them:
  std::span<const float> nll() const;                // (N) nats
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
  ModelOutputs outputs_;  // what comes to the host
  Tensor hints_, strengths_;
  Var digest_;
  std::unique_ptr<Session> session_;
};

}  // namespace fairway
