// Ranks as threads of one process: the same calls as over MPI, on memory that the test can look at.
#pragma once

#include <barrier>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "comm/communicator.h"

namespace fairway {

class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : size_(size), barrier_(size), posted_(static_cast<size_t>(size)) {}

  // Calls body(communicator) on `size` threads and returns the counters of each.
  std::vector<CommCounters> run(const std::function<void(Communicator&)>& body) {
    std::vector<CommCounters> counters(static_cast<size_t>(size_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        Rank communicator(*this, rank);
        body(communicator);
        counters[static_cast<size_t>(rank)] = communicator.counters();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return counters;
  }

 private:
  class Rank final : public Communicator {
   public:
    Rank(ThreadRanks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return all_.size_; }
    void progress() override {}
    void end_all(const std::string& sentence, int) override { throw std::runtime_error(sentence); }

   private:
    struct Started {
      Tensor from, to;
      bool gather;
      int64_t stride = 0;  // of a gather to one rank
      int root = -1;
    };
    void do_barrier() override { all_.barrier_.arrive_and_wait(); }
    void do_broadcast(const Tensor& data, int from) override {
      post(data.data);
      if (rank_ != from) std::memcpy(data.data, all_.posted_[static_cast<size_t>(from)], data.spec.bytes());
      do_barrier();
    }
    void do_all_reduce(std::span<double> values) override {
      std::vector<double> sum(values.size());
      post(values.data());
      for (const void* other : all_.posted_)
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<const double*>(other)[i];
      do_barrier();
      std::copy(sum.begin(), sum.end(), values.begin());
      do_barrier();
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
      if (at.root >= 0) return gather_to_one(at);
      const size_t piece = at.to.spec.bytes() / static_cast<size_t>(size());
      post(at.from.data);
      for (size_t q = 0; q < all_.posted_.size(); ++q) {
        const auto* from = static_cast<const std::byte*>(all_.posted_[q]);
        std::memcpy(at.to.data + q * piece, from + (at.gather ? 0 : static_cast<size_t>(rank_) * piece), piece);
      }
      do_barrier();
    }
    void gather_to_one(const Started& at) {
      post(at.from.data);
      for (size_t q = 0; q < all_.posted_.size() && rank_ == at.root; ++q)
        std::memcpy(at.to.data + q * static_cast<size_t>(at.stride) * sizeof(float), all_.posted_[q], at.from.spec.bytes());
      do_barrier();
    }
    void post(const void* data) {
      all_.posted_[static_cast<size_t>(rank_)] = data;
      do_barrier();
    }
    ThreadRanks& all_;
    int rank_;
    std::vector<Started> started_;
  };

  int size_;
  std::barrier<> barrier_;
  std::vector<const void*> posted_;
};

}  // namespace fairway
