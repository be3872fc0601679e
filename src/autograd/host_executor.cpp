#include "autograd/host_executor.h"

#include "base/clock.h"
#include "base/error.h"

namespace fairway {

std::unique_ptr<Session> HostExecutor::open(Recording recording, Arena* activations) {
  return std::make_unique<HostSession>(std::move(recording), activations, *this);
}

HostSession::HostSession(Recording recording, Arena* activations, Executor& executor)
    : Session(std::move(recording)),
      executor_(&executor),
      own_(activations == nullptr ? std::make_unique<Arena>("activations", program().arena_bytes) : nullptr),
      planned_(activations == nullptr ? own_.get() : activations) {
  FAIRWAY_ASSERT(planned_->capacity() >= program().arena_bytes, "the shared arena is smaller than the program needs");
  place_apart();
  const auto tensors = [&](const std::vector<int32_t>& ids) {
    std::vector<Tensor> out;
    out.reserve(ids.size());
    for (int32_t id : ids) out.push_back(tensor(id));
    return out;
  };
  for (const Call& call : program().calls) {
    BoundCall bound{&call, tensors(call.in), tensors(call.out), tensors(call.saved), tensors(call.dout), tensors(call.din), {}};
    for (size_t i = 0; i < bound.din.size(); ++i) bound.din[i].accumulate = call.accumulate[i];
    if (call.workspace_bytes > 0)
      bound.workspace = planned_->at(call.workspace_offset, {{static_cast<int64_t>(call.workspace_bytes)}, DType::u8});
    calls_.push_back(std::move(bound));
  }
}

void HostSession::place_apart() {
  size_t bytes = 0;
  for (const Value& value : program().values)
    if (value.place == Value::Place::apart) bytes += align_up(value.spec.bytes());
  if (bytes == 0) return;
  apart_ = std::make_unique<Arena>("state", bytes);
  states_.resize(program().values.size());
  for (size_t id = 0; id < states_.size(); ++id) {
    const Value& value = program().values[id];
    if (value.place == Value::Place::apart) states_[id] = apart_->make(value.name, value.spec);
  }
}

Tensor HostSession::tensor(int32_t id) const {
  if (id == kNoValue) return {};
  const Value& value = program().value(id);
  switch (value.place) {
    case Value::Place::bound: return recording().bindings.at(value.slot);
    case Value::Place::apart: return states_[static_cast<size_t>(id)];
    case Value::Place::planned: break;
  }
  return planned_->at(value.offset, value.spec);
}

void HostSession::run() {
  for (const BoundCall& call : calls_) executor_->run_call(call);
}

void HostSession::run_told(const std::function<void(size_t call)>& after) {
  for (size_t i = 0; i < calls_.size(); ++i) {
    executor_->run_call(calls_[i]);
    after(i);
  }
}

void HostSession::run_timed(std::vector<double>& seconds) {
  seconds.resize(calls_.size());
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Stopwatch watch;
    executor_->run_call(calls_[i]);
    seconds[i] += watch.seconds();
  }
}

void HostSession::deliver(int32_t value, Delivery& to) {
  const Tensor from = tensor(value);
  to.make_room(from.spec.bytes());
  std::memcpy(to.bytes().data(), from.data, from.spec.bytes());
}

void HostSession::clear_state() {
  for (const Tensor& state : states_)
    if (state) std::memset(state.data, 0, state.spec.bytes());
}

}  // namespace fairway
