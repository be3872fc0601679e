#include "comm/communicator.h"

#include "base/error.h"

namespace fairway {
namespace {

void count(Traffic& traffic, size_t bytes) {
  ++traffic.calls;
  traffic.bytes += static_cast<int64_t>(bytes);
}

template <class Change>
void each(CommCounters& to, const CommCounters& by, const Change& change) {
  for (Traffic CommCounters::*kind : {&CommCounters::exchange, &CommCounters::all_gather, &CommCounters::all_reduce,
                                      &CommCounters::gather, &CommCounters::broadcast}) {
    change((to.*kind).calls, (by.*kind).calls);
    change((to.*kind).bytes, (by.*kind).bytes);
  }
}

}  // namespace

CommCounters CommCounters::since(const CommCounters& before) const {
  CommCounters out = *this;
  each(out, before, [](int64_t& to, int64_t by) { to -= by; });
  return out;
}

void CommCounters::add(const CommCounters& more) {
  each(*this, more, [](int64_t& to, int64_t by) { to += by; });
}

std::string Communicator::take_name(const char* kind) {
  std::string out = next_name_.empty() ? kind : std::string(kind) + " " + next_name_;
  next_name_.clear();
  return out;
}

void Communicator::barrier() { do_barrier(); }

void Communicator::broadcast(const Tensor& data, int from) {
  count(counters_.broadcast, size() > 1 ? data.spec.bytes() : 0);
  do_broadcast(data, from);
}

void Communicator::all_reduce(std::span<double> values) {
  const auto ranks = static_cast<size_t>(size());
  count(counters_.all_reduce, 2 * (ranks - 1) * values.size_bytes() / ranks);
  do_all_reduce(values);
}

Communicator::Request Communicator::start_exchange(const Tensor& full, const Tensor& received) {
  const auto ranks = static_cast<size_t>(size());
  FAIRWAY_ASSERT(full.spec.dtype == received.spec.dtype && full.numel() == received.numel() && full.numel() % size() == 0,
                 "an exchange needs two buffers of the same size that the ranks divide");
  count(counters_.exchange, full.spec.bytes() / ranks * (ranks - 1));
  return do_start_exchange(full, received);
}

Communicator::Request Communicator::start_all_gather(const Tensor& shard, const Tensor& full) {
  FAIRWAY_ASSERT(full.spec.dtype == shard.spec.dtype && full.numel() == shard.numel() * size(),
                 "a gather needs a buffer of all shards");
  count(counters_.all_gather, shard.spec.bytes() * static_cast<size_t>(size() - 1));
  return do_start_all_gather(shard, full);
}

Communicator::Request Communicator::start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to) {
  FAIRWAY_ASSERT(rank() != to || (all.spec.dtype == part.spec.dtype && stride >= part.numel()), "a gather needs room for all");
  count(counters_.gather, rank() == to ? 0 : part.spec.bytes());
  return do_start_gather(part, all, stride, to);
}

void Communicator::wait(Request request) { do_wait(request); }

}  // namespace fairway
