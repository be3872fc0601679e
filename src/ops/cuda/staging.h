// Ways between host and device memory. Staging: one call on host memory, carried to the device and back: for comparisons with
// ref and for tests. Float only.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "autograd/executor.h"
#include "ops/cuda/context.h"

namespace fairway::cuda {

// check() of a wait for the device's results, which a test may let fail (base/fault.h).
void check_waited(cudaError_t status, const char* what, std::source_location where = std::source_location::current());

// Pinned memory that copies to the device pass through, so that the host neither waits for them nor for what runs before
// them. It has two halves: one is filled again once the copies out of it, a half ago, are done. Large copies go in pieces that
// all threads move.
class PinnedRing {
 public:
  explicit PinnedRing(size_t bytes);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;
  void send(const std::byte* from, std::byte* to, size_t bytes, Context& context);

 private:
  void send_piece(const std::byte* from, std::byte* to, size_t bytes, Context& context);
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, used_ = 0;  // of a half
  int half_ = 0;
  std::array<cudaEvent_t, 2> left_{};  // recorded when a half was full
};

// Pinned memory that large copies from the device pass through: while one piece is on its way, all threads move the one before
// it. The driver's own way through its buffers takes several times as long.
class PinnedLanding {
 public:
  static constexpr size_t kPiece = size_t{8} << 20, kLeast = size_t{1} << 20;  // smaller copies gain nothing

  PinnedLanding() = default;
  ~PinnedLanding();
  PinnedLanding(const PinnedLanding&) = delete;
  PinnedLanding& operator=(const PinnedLanding&) = delete;
  void receive(const std::byte* from, std::byte* to, size_t bytes, Context& context);  // waits

 private:
  std::byte* data_ = nullptr;  // two pieces, taken when they are first needed
  std::array<cudaEvent_t, 2> there_{};
};

// Numbers from the device, read once they are there. The first of a size takes the pinned memory for it.
class PinnedNumbers {
 public:
  PinnedNumbers();
  ~PinnedNumbers();
  PinnedNumbers(const PinnedNumbers&) = delete;
  PinnedNumbers& operator=(const PinnedNumbers&) = delete;
  void send(const Tensor& from, Context& context);
  void receive(std::span<std::byte> to);  // what the last send() sent; nothing when it was received already

 private:
  std::byte* data_ = nullptr;
  size_t room_ = 0, bytes_ = 0;
  cudaEvent_t there_ = nullptr;
};

class Staging {
 public:
  void run(const BoundCall& host, const std::function<void(const BoundCall&)>& run_call, Context& context);

 private:
  Tensor carry(const Tensor& host, Context& context);
  Buffer buffer_;
  size_t used_ = 0;
};

}  // namespace fairway::cuda
