// The arithmetic of training without clock, files or terminal: parameters, programs of every stage, optimizer, averages.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "comm/communicator.h"
#include "model/model.h"
#include "optim/averager.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace fairway {

// One micro-batch as the model reads it: i32 tensors of M tokens. The loader's batches convert to it.
struct MicroBatch {
  Tensor tokens, targets, segment_start;
};

// How a micro-batch lies in memory. Packed documents form one long row.
struct Geometry {
  int64_t tokens = 0;      // M
  int64_t row_length = 0;  // T
  bool packed = false;
};
Geometry micro_batch_geometry(const Recipe& recipe);

struct StepResult {
  double loss = 0;  // mean over the step's micro-batches
  double gradient_norm = 0;
};

class Trainer {
 public:
  // Several processes each make one and call the same methods; the result is that of one process, bit for bit.
  Trainer(const Recipe& recipe, const Geometry& geometry, Executor& executor, Communicator& comm = single_process());

  void initialize(uint64_t seed, ThreadPool& pool);  // weights from the seed; averages begin there
  void begin_averages() { averager_.start(); }       // after weights were put in place by hand

  // One optimizer step over the micro-batches that `next` hands out, rank by emulated rank; of several processes each is handed
  // those of its own emulated ranks.
  StepResult step(const std::function<MicroBatch()>& next, const StepNumbers& numbers, ModelStage stage) {
    begin_step(next, numbers, stage);
    return finish_step();
  }
  // The same in two halves, so that a device has its next step before the host reads what the last one gave: at most
  // kStepsAhead steps may be begun and not finished. finish_step() tells of the first of them.
  static constexpr int64_t kStepsAhead = 2;
  void begin_step(const std::function<MicroBatch()>& next, const StepNumbers& numbers, ModelStage stage);
  StepResult finish_step();

  Communicator& comm() { return *comm_; }
  Executor& executor() { return *executor_; }
  ParamStore& params() { return params_; }
  const ParamStore& params() const { return params_; }
  Optimizer& optimizer() { return optimizer_; }
  Averager& averager() { return averager_; }
  Session& session(ModelStage stage) const;
  void load(const MicroBatch& batch, double loss_gradient);  // into the programs' inputs
  Tensor loss(ModelStage stage) const;
  void fetch_state();  // weights, optimizer state and averages become readable by the host
  size_t activation_bytes() const { return activations_->capacity(); }

 private:
  static constexpr size_t kStages = 4;
  static size_t index_of(ModelStage stage) { return (stage.looped ? 1U : 0U) + (stage.fake_quant ? 2U : 0U); }
  bool reachable(ModelStage stage) const;
  void prepare_stages();

  const Recipe* recipe_;
  Geometry geometry_;
  Executor* executor_;
  Communicator* comm_;
  ParamStore params_;
  Arena io_;
  ModelInputs inputs_;
  Optimizer optimizer_;
  Averager averager_;
  std::unique_ptr<Arena> activations_;  // shared by the stages: only one runs at a time
  std::array<std::unique_ptr<Session>, kStages> stages_;
  std::array<ModelOutputs, kStages> outputs_;
  struct Asked {  // of this process: the loss of every micro-batch, the gradient norm of every emulated rank
    std::vector<std::unique_ptr<Delivery>> losses, norms;
  };
  std::array<Asked, kStepsAhead> asked_;
  int64_t begun_ = 0, finished_ = 0;
  std::vector<double> told_;  // of a step: the loss of every micro-batch, then the gradient norm of every emulated rank
};

}  // namespace fairway
