// The arithmetic of training without clock, files or terminal: parameters, programs of every stage, optimizer, averages.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

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

// Which program a step runs, over which form of its micro-batches.
struct TrainStage {
  ModelStage model;
  int64_t short_rows = 0;  // tokens of a row, or of a packed document's piece (data.short_rows); 0: as long as they come
  bool operator==(const TrainStage&) const = default;
};

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
  StepResult step(const std::function<MicroBatch()>& next, const StepNumbers& numbers, const TrainStage& stage) {
    begin_step(next, numbers, stage);
    return finish_step();
  }
  // The same in two halves, so that a device has its next step before the host reads what the last one gave: at most
  // kStepsAhead steps may be begun and not finished. finish_step() tells of the first of them.
  static constexpr int64_t kStepsAhead = 2;
  void begin_step(const std::function<MicroBatch()>& next, const StepNumbers& numbers, const TrainStage& stage);
  StepResult finish_step();

  Communicator& comm() { return *comm_; }
  Executor& executor() { return *executor_; }
  ParamStore& params() { return params_; }
  const ParamStore& params() const { return params_; }
  Optimizer& optimizer() { return optimizer_; }
  Averager& averager() { return averager_; }
  bool comes_to(const TrainStage& stage) const;  // whether the recipe does
  Session& session(const TrainStage& stage) const { return *prepared(stage).session; }
  void load(const MicroBatch& batch, double loss_gradient, int64_t short_rows = 0);  // into the programs' inputs
  Tensor loss(const TrainStage& stage) const;
  void fetch_state();  // weights, optimizer state and averages become readable by the host
  size_t activation_bytes() const { return activations_->capacity(); }

 private:
  struct Prepared {
    TrainStage stage;  // of packed documents with short_rows = 0: how they were cut is in the inputs
    ModelOutputs outputs;
    std::unique_ptr<Session> session;
  };
  std::vector<TrainStage> stages_to_prepare() const;
  ModelInputs inputs_with(int64_t short_rows);
  const Prepared& prepared(const TrainStage& stage) const;
  void prepare_stages();

  const Recipe* recipe_;
  Geometry geometry_;
  Executor* executor_;
  Communicator* comm_;
  ParamStore params_;
  Arena io_;
  ModelInputs inputs_;
  std::vector<int32_t> pieces_;  // starts of the pieces that packed documents are cut into
  Optimizer optimizer_;
  Averager averager_;
  std::unique_ptr<Arena> activations_;  // shared by the stages: only one runs at a time
  std::vector<Prepared> stages_;
  struct Asked {  // of this process: the loss of every micro-batch, the gradient norm of every emulated rank
    std::vector<std::unique_ptr<Delivery>> losses, norms;
  };
  std::array<Asked, kStepsAhead> asked_;
  int64_t begun_ = 0, finished_ = 0;
  std::vector<double> told_;  // of a step: the loss of every micro-batch, then the gradient norm of every emulated rank
};

}  // namespace fairway
