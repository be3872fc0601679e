#include "comm/thread_ranks.h"

#include <cstring>
#include <thread>

#include "base/error.h"
#include "comm/device_staging.h"

namespace fairway {

void ThreadRanks::meet() {
  std::unique_lock lock(mutex_);
  const int64_t meeting = meetings_;
  if (!failure_ && ++here_ == size_) {
    here_ = 0;
    ++meetings_;
    all_here_.notify_all();
  }
  all_here_.wait(lock, [&] { return failure_ || meetings_ != meeting; });
  if (failure_) throw WorkError("another rank has failed");
}

void ThreadRanks::fail(std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(why);
  all_here_.notify_all();
}

class ThreadRanks::Rank final : public Communicator {
 public:
  Rank(ThreadRanks& all, int rank) : all_(all), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return all_.size_; }
  void progress() override {}
  [[noreturn]] void end_all(const std::string& sentence, int) override { throw WorkError(sentence); }

 private:
  struct Started {
    Tensor from, to;
    bool gather;
    int64_t stride = 0;  // of a gather to one rank
    int root = -1;
  };

  void do_barrier() override { all_.meet(); }
  void do_broadcast(const Tensor& data, int from) override {
    post(data.data);
    if (rank_ != from) std::memcpy(data.data, all_.posted_[static_cast<size_t>(from)], data.spec.bytes());
    all_.meet();
  }
  void do_all_reduce(std::span<double> values) override {
    std::vector<double> sum(values.size());
    post(reinterpret_cast<const std::byte*>(values.data()));
    for (const std::byte* other : all_.posted_)
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += reinterpret_cast<const double*>(other)[i];
    all_.meet();
    std::copy(sum.begin(), sum.end(), values.begin());
    all_.meet();
  }
  Request do_start_exchange(const Tensor& full, const Tensor& received) override { return start({full, received, false}); }
  Request do_start_all_gather(const Tensor& shard, const Tensor& full) override { return start({shard, full, true}); }
  Request do_start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to) override {
    return start({part, all, true, stride, to});
  }
  Request start(const Started& started) {
    started_.push_back(started);
    return started_.size() - 1;
  }

  void do_wait(Request request) override {
    const Started& at = started_[request];
    post(on_host(at.from).data);
    if (at.root < 0) {
      const Tensor to = at.to.device == Device::cpu ? at.to : staging_.host_of(at.to);
      const size_t piece = to.spec.bytes() / all_.posted_.size(), own = at.gather ? 0 : static_cast<size_t>(rank_) * piece;
      for (size_t q = 0; q < all_.posted_.size(); ++q) std::memcpy(to.data + q * piece, all_.posted_[q] + own, piece);
      if (at.to.device != Device::cpu) staging_.put(at.to, *followed());
    } else if (rank_ == at.root) {
      for (size_t q = 0; q < all_.posted_.size(); ++q)
        std::memcpy(at.to.data + q * static_cast<size_t>(at.stride) * sizeof(float), all_.posted_[q], at.from.spec.bytes());
    }
    all_.meet();
  }
  Tensor on_host(const Tensor& tensor) { return tensor.device == Device::cpu ? tensor : staging_.bring(tensor, *followed()); }
  void post(const std::byte* data) {
    all_.posted_[static_cast<size_t>(rank_)] = data;
    all_.meet();
  }

  ThreadRanks& all_;
  int rank_;
  std::vector<Started> started_;
  DeviceStaging staging_;
};

std::vector<CommCounters> ThreadRanks::run(const std::function<void(Communicator&)>& body) {
  std::vector<CommCounters> counters(static_cast<size_t>(size_));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size_; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Rank communicator(*this, rank);
        body(communicator);
        counters[static_cast<size_t>(rank)] = communicator.counters();
      } catch (...) {
        fail(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(failure_);
  return counters;
}

}  // namespace fairway
