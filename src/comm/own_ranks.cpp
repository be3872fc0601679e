// Everything goes through memory that the ranks share, in rounds: a rank writes its window, all arrive, and each reads what the
// others' windows have for it. Windows take turns, so one arrival a round is enough: who writes a window again has met all
// who read it. Messages larger than a window take several rounds. Tensors on a device pass through pinned host memory.
#include "comm/own_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/timeline.h"
#include "comm/device_staging.h"
#include "comm/patience.h"
#include "comm/rank_memory.h"

namespace fairway {
namespace {

class OwnRanks final : public Communicator {
 public:
  explicit OwnRanks(const Launch& launch)
      : rank_(launch.rank), size_(launch.size), limit_(watchdog_limit()), memory_(RankMemory::find(launch)) {
    barrier();  // a rank that has not begun is not one that stands still
    watchdog_ = std::make_unique<Watchdog>(memory_.beats(), static_cast<size_t>(rank_), limit_,
                                           [this](size_t silent) { end_silent(static_cast<int>(silent)); });
  }
  ~OwnRanks() override {
    barrier();  // nobody's beat ends while another still watches it
    watchdog_.reset();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void progress() override {}
  [[noreturn]] void end_all(const std::string& sentence, int status) override {
    memory_.leave_words(sentence, status);
    _exit(status);
  }

 private:
  struct Started {
    Tensor arrives;  // on a device: where its host twin goes at the end
    bool used = false;
  };

  [[noreturn]] void end_silent(int rank) {
    end_all("fairway: rank " + std::to_string(rank) + " does not answer (stopped?); the run ends", 1);
  }

  // put(window) writes this rank's; take(q, window) reads rank q's once all have written.
  template <class Put, class Take>
  void round(const Put& put, const Take& take) {
    ++round_;
    put(memory_.window(rank_, round_));
    memory_.arrived(rank_).store(round_, std::memory_order_release);
    Patience patience;
    for (int q = 0; q < size_; ++q)
      while (memory_.arrived(q).load(std::memory_order_acquire) < round_) patience.look_again();
    for (int q = 0; q < size_; ++q) take(q, static_cast<const std::byte*>(memory_.window(q, round_)));
  }

  void do_barrier() override {
    round([](std::byte*) {}, [](int, const std::byte*) {});
  }
  void do_broadcast(const Tensor& data, int from) override {
    in_parts(data.spec.bytes(), RankMemory::kWindowBytes, [&](size_t at, size_t bytes) {
      round(
          [&](std::byte* own) {
            if (rank_ == from) std::memcpy(own, data.data + at, bytes);
          },
          [&](int q, const std::byte* theirs) {
            if (q == from && rank_ != from) std::memcpy(data.data + at, theirs, bytes);
          });
    });
  }
  void do_all_reduce(std::span<double> values) override {
    std::vector<double> sum(values.size()), other(values.size());
    auto* bytes_of_sum = reinterpret_cast<std::byte*>(other.data());
    FAIRWAY_ASSERT(values.size_bytes() <= RankMemory::kWindowBytes, "sums over ranks are of few numbers");
    round([&](std::byte* own) { std::memcpy(own, values.data(), values.size_bytes()); },
          [&](int, const std::byte* theirs) {
            std::memcpy(bytes_of_sum, theirs, values.size_bytes());
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
          });
    std::copy(sum.begin(), sum.end(), values.begin());
  }

  // Every rank starts the same calls in the same order, so each is done when it is started.
  Request do_start_exchange(const Tensor& full, const Tensor& received) override {
    const Tensor from = outgoing(full), to = on_host(received);
    const auto ranks = static_cast<size_t>(size_), self = static_cast<size_t>(rank_);
    const size_t piece = from.spec.bytes() / ranks;
    const std::string name = take_name("exchange");
    const TimelineRange range(name);
    in_parts(piece, RankMemory::kWindowBytes / ranks, [&](size_t at, size_t bytes) {
      round(
          [&](std::byte* own) {
            for (size_t q = 0; q < ranks; ++q) std::memcpy(own + q * bytes, from.data + q * piece + at, bytes);
          },
          [&](int q, const std::byte* theirs) {
            std::memcpy(to.data + static_cast<size_t>(q) * piece + at, theirs + self * bytes, bytes);
          });
    });
    return begun(received);
  }
  Request do_start_all_gather(const Tensor& shard, const Tensor& full) override {
    const Tensor from = outgoing(shard), to = on_host(full);
    gather(from, to, from.spec.bytes(), take_name("gather"));
    return begun(full);
  }
  Request do_start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to) override {
    FAIRWAY_ASSERT(part.device == Device::cpu, "slices of a device's gradient travel between devices alone");
    gather(part, rank_ == to ? all : Tensor{}, static_cast<size_t>(stride) * size_of(part.spec.dtype), take_name("slice"));
    return begun({});
  }
  // Rank q's bytes come to lie q·stride bytes behind the beginning of `to`, where there is one.
  void gather(const Tensor& from, const Tensor& to, size_t stride, const std::string& name) {
    const TimelineRange range(name);
    in_parts(from.spec.bytes(), RankMemory::kWindowBytes, [&](size_t at, size_t bytes) {
      round([&](std::byte* own) { std::memcpy(own, from.data + at, bytes); },
            [&](int q, const std::byte* theirs) {
              if (to.data != nullptr) std::memcpy(to.data + static_cast<size_t>(q) * stride + at, theirs, bytes);
            });
    });
  }

  template <class Body>
  static void in_parts(size_t all, size_t most, const Body& body) {
    for (size_t at = 0; at < all; at += most) body(at, std::min(most, all - at));
  }

  Tensor outgoing(const Tensor& tensor) { return tensor.device == Device::cpu ? tensor : staging_.bring(tensor, *followed()); }
  Tensor on_host(const Tensor& tensor) { return tensor.device == Device::cpu ? tensor : staging_.host_of(tensor); }
  Request begun(const Tensor& arrives) {
    Request id = 0;
    while (id < started_.size() && started_[id].used) ++id;
    if (id == started_.size()) started_.emplace_back();
    started_[id] = {arrives, true};
    return id;
  }
  void do_wait(Request request) override {
    Started& started = started_[request];
    if (started.arrives.data != nullptr && started.arrives.device != Device::cpu) staging_.put(started.arrives, *followed());
    started.used = false;
  }

  int rank_, size_;
  double limit_;
  RankMemory memory_;
  uint64_t round_ = 0;
  std::vector<Started> started_;
  DeviceStaging staging_;
  std::unique_ptr<Watchdog> watchdog_;  // last: its thread uses the rest
};

}  // namespace

std::unique_ptr<Communicator> start_own(const Launch& launch) { return std::make_unique<OwnRanks>(launch); }

bool told_to_parent(const Launch& launch, const std::string& sentence, int status) {
  if (launch.kind != Launch::Kind::own) return false;
  try {
    RankMemory::find(launch).leave_words(sentence, status);
    return true;
  } catch (const InputError&) {
    return false;  // a program that a rank has started, or variables that nobody should have set
  }
}

}  // namespace fairway
