// Parallel Muon (spec §9): each rank sums and orthogonalises its shard of every bank, and the updates are gathered. The
// exchanges of all banks start at once, largest first; AdamW runs while they fly; a bank's gather flies while the next bank is
// worked on. With one emulated rank in each process the banks do not wait for the end of the backward pass (early_slices.h); on
// a device the pass and the exchanges that leave from it are one graph, which they end before the update begins. What travels
// in bf16 is copied into and out of buffers of that type; sums are rounded to it after every addition.
// Bits equal those of one process: sums go by comm/tree.h, and each matrix is updated as a whole by one rank.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "autograd/executor.h"
#include "comm/communicator.h"
#include "optim/early_slices.h"
#include "optim/gradient_layout.h"
#include "optim/record_update.h"

namespace fairway {

class ShardedUpdate {
 public:
  // `mean` holds this rank's branch of the mean in the layout; it is overwritten by run(). With `raw` the banks' gradients are
  // taken where the model leaves them instead, and `raw` is this rank's clip coefficient.
  struct Gradients {
    Tensor mean, raw;
    double factor = 1;  // of the mean; with `raw` only
  };
  ShardedUpdate(const Recipe& recipe, const GradientLayout& layout, const Gradients& gradients, Executor& executor,
                Communicator& comm, const UpdateInputs& inputs);

  // Runs the passes that complete the gradients; parts of them may set out on the way.
  void run_last(Session& passes);
  void run();

  // The whole state of a bank, as one process would have it. Collective; `full` is written on rank 0 only.
  void gather_momentum(const ParamBank& bank, const Tensor& full);
  void take_momentum(const ParamBank& bank, const Tensor& full);  // from rank 0, which alone reads `full`
  const AdamState& adam(const ParamBank& bank) const { return adam_.at(bank.number); }

 private:
  struct Bank {
    const ShardedBank* place = nullptr;
    Tensor full, momentum, sent;           // (n·shard matrices), (shard, R, C), (shard, R, C)
    Tensor wire, received;                 // `full` as it leaves and as updates come, and n pieces; in the type that travels
    std::unique_ptr<Session> work, apply;  // sum and update of the shard; update of the weights
    Communicator::Request request = 0;
  };
  struct Replicated {
    Tensor wire, received, shard;
    Communicator::Request request = 0;
  };
  void start_exchanges();
  void await_gradient(size_t bank);
  void walk();
  void update_replicated();
  size_t state_bytes(const GradientLayout& layout) const;
  void record_bank(const Recipe& recipe, const ShardedBank& place, const Gradients& gradients, const UpdateInputs& inputs);
  Tensor record_sum(Tape& tape, const Tensor& received, const Gradients& gradients) const;
  void record_packs(const Recipe& recipe, const GradientLayout& layout, const Tensor& mean, const UpdateInputs& inputs);
  const Bank& state_of(const ParamBank& bank) const;

  Executor* executor_;
  Communicator* comm_;
  Arena state_, received_;
  std::vector<Bank> banks_;
  std::map<int32_t, AdamState> adam_;  // by the bank's number
  Tensor wire_;                        // the rounded part of the mean, in bf16
  std::vector<Replicated> packs_;
  std::unique_ptr<Session> narrow_, pack_sum_, adamw_;  // the first where there is a wire_
  std::unique_ptr<EarlySlices> early_;
  Tensor clip_, clips_;  // of this rank, of all ranks
  struct Graph {
    std::unique_ptr<Sequence> sequence;
    CommCounters counted;  // of one run
  };
  void run_graph(Graph& graph, const std::function<void()>& body);
  bool joined() const { return early_ && !comm_->host_waits(); }  // early matrices have come when run_last() is done

  Graph update_;
  std::map<const Session*, Graph> passes_;
};

}  // namespace fairway
