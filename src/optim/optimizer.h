// Muon for the matrix banks, AdamW for the rest (spec §7, §8), as recorded programs. Gradients arrive rank by rank: each
// emulated rank's gradient is clipped on its own and joins the mean, as if that many devices had worked (spec §7, clipping).
// Several processes share the emulated ranks in runs of neighbours, and the update as spec §9 says; the bits stay the same.
#pragma once

#include <memory>
#include <vector>

#include "optim/mean_tree.h"
#include "optim/sharded_update.h"

namespace fairway {

struct StepNumbers {
  double learning_rate_scale = 1;
  double momentum = 0;
  int64_t step = 1;  // counted from 1, for Adam's bias correction
};

// Emulated ranks of each process. InputError unless they divide the world into whole branches of comm/tree.h.
int64_t emulated_share(int64_t world, int64_t processes);

class Optimizer {
 public:
  // Early: gradients of a bank may set out during the backward pass.
  enum class Start : uint8_t { early, after_backward };
  Optimizer(const Recipe& recipe, const ParamStore& params, Executor& executor, Communicator& comm = single_process(),
            Start start = Start::early);

  int64_t local_ranks() const { return local_ranks_; }  // emulated ranks this process works through

  void begin_rank();               // gradients of the next emulated rank start at zero
  void run_last(Session& passes);  // of an emulated rank's last micro-batch
  void end_rank(int64_t rank);     // clip them, add them to the mean; counted from 0 in each process
  void update(const StepNumbers&);

  double gradient_norm() const;  // of the last rank, before clipping
  void deliver_norm(Delivery& to) const { clip_session_->deliver(clip_value_.id, to); }
  static double norm_in(const Delivery& delivered) { return delivered.number<double>(1); }
  const Tensor& scalars() const { return scalars_; }

  // Momentum and moments: what a checkpoint keeps, the same for any number of processes. With several of them it is whole on
  // rank 0 after gather_state(), and taken up by all from rank 0 by share_state(); both are collective.
  Tensor flat_state() const { return flat_state_; }
  void gather_state();
  void share_state();

 private:
  struct StatePart {
    const ParamBank* bank;
    Tensor first, second;  // momentum, or m and v; in flat_state_
  };
  Recording record_clip();
  Recording record_update(const Recipe& recipe);
  void make_state();

  const ParamStore* params_;
  Executor* executor_;
  Communicator* comm_;
  int64_t world_, local_ranks_;
  double clip_norm_;
  Arena state_;  // empty on ranks other than 0 when there are several
  Arena work_;
  Tensor flat_state_, scalars_, totals_, clip_;
  std::vector<StatePart> parts_;
  GradientLayout layout_;
  std::unique_ptr<MeanTree> mean_;  // absent when one process has one emulated rank and rounds nothing
  std::unique_ptr<ShardedUpdate> sharded_;
  Var clip_value_;  // of clip_session_
  std::unique_ptr<Session> zero_, clip_session_, update_;
};

}  // namespace fairway
