#include "comm/communicator.h"

#include "base/error.h"

namespace fairway {
namespace {

void count(Traffic& traffic, size_t bytes) {
  ++traffic.calls;
  traffic.bytes += static_cast<int64_t>(bytes);
}

}  // namespace

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

void Communicator::wait(Request request) { do_wait(request); }

}  // namespace fairway
