// What an executor over packed weights asks of the calls of a program: their arguments by name, and which of them are packed.
#pragma once

#include "autograd/executor.h"
#include "generate/packed_weights.h"
#include "ops/arguments.h"

namespace fairway {

class PackedCalls {
 public:
  // All of it must outlive this; `queue` is the one that an op runs on by itself.
  PackedCalls(const Program& program, const PackedWeights& weights, Queue& queue)
      : program_(program), weights_(weights), queue_(queue) {}

  template <class Op>
  Forward<Op> args(const BoundCall& call) const {
    return {to_args<typename Op::In>(call.in), to_args<typename Op::Out>(call.out), to_args<typename Op::Saved>(call.saved),
            call.workspace, &queue_};
  }
  const PackedMatrix* find(int32_t value) const {
    const Slot* slot = program_.slot_of(value);
    return slot == nullptr || slot->kind != Slot::Kind::parameter ? nullptr : weights_.find(slot->param);
  }

 private:
  const Program& program_;
  const PackedWeights& weights_;
  Queue& queue_;
};

}  // namespace fairway
