#include "ops/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "base/fault.h"

namespace fairway::cuda {
namespace {

constexpr size_t kPlace = 256;

size_t place_bytes(const Tensor& tensor) { return tensor ? (tensor.spec.bytes() / kPlace + 2) * kPlace : 0; }

size_t place_bytes(const BoundCall& call) {
  size_t total = place_bytes(call.workspace);
  for (const auto* list : {&call.in, &call.out, &call.saved, &call.dout, &call.din})
    for (const Tensor& tensor : *list) total += place_bytes(tensor);
  return total;
}

std::byte* pinned(size_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, bytes), "cudaMallocHost");
  return static_cast<std::byte*>(data);
}

// By all threads, where there is much of it.
void move(ThreadPool& pool, std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kShare = size_t{1} << 19;
  if (bytes <= 2 * kShare) {
    std::memcpy(to, from, bytes);
    return;
  }
  pool.parallel_for(static_cast<int64_t>((bytes + kShare - 1) / kShare), [&](int64_t i) {
    const size_t at = static_cast<size_t>(i) * kShare;
    std::memcpy(to + at, from + at, std::min(kShare, bytes - at));
  });
}

cudaEvent_t untimed_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return event;
}

}  // namespace

void check_waited(cudaError_t status, const char* what, std::source_location where) {
  const bool lost = fault::armed && fault::strikes(fault::Event::device);
  check(lost ? cudaErrorECCUncorrectable : status, what, where);
}

PinnedRing::PinnedRing(size_t bytes) : data_(pinned(bytes)), bytes_(bytes / 2 / kPlace * kPlace) {
  for (cudaEvent_t& event : left_) event = untimed_event();
}

PinnedRing::~PinnedRing() {
  for (cudaEvent_t event : left_) cudaEventDestroy(event);
  cudaFreeHost(data_);
}

void PinnedRing::send(const std::byte* from, std::byte* to, size_t bytes, Context& context) {
  for (size_t at = 0; at < bytes; at += bytes_) send_piece(from + at, to + at, std::min(bytes_, bytes - at), context);
}

void PinnedRing::send_piece(const std::byte* from, std::byte* to, size_t bytes, Context& context) {
  if (used_ + bytes > bytes_) {
    check(cudaEventRecord(left_[static_cast<size_t>(half_)], context.stream()), "cudaEventRecord");
    half_ = 1 - half_;
    used_ = 0;
    check(cudaEventSynchronize(left_[static_cast<size_t>(half_)]), "cudaEventSynchronize");
  }
  std::byte* place = data_ + static_cast<size_t>(half_) * bytes_ + used_;
  move(context.pool(), place, from, bytes);
  check(cudaMemcpyAsync(to, place, bytes, cudaMemcpyHostToDevice, context.stream()), "cudaMemcpyAsync");
  used_ += (bytes + kPlace - 1) / kPlace * kPlace;
}

PinnedLanding::~PinnedLanding() {
  if (data_ == nullptr) return;
  for (cudaEvent_t event : there_) cudaEventDestroy(event);
  cudaFreeHost(data_);
}

void PinnedLanding::receive(const std::byte* from, std::byte* to, size_t bytes, Context& context) {
  if (data_ == nullptr) {
    data_ = pinned(2 * kPiece);
    for (cudaEvent_t& event : there_) event = untimed_event();
  }
  const size_t pieces = (bytes + kPiece - 1) / kPiece;
  const auto size = [&](size_t i) { return std::min(kPiece, bytes - i * kPiece); };
  const auto fetch = [&](size_t i) {
    check(cudaMemcpyAsync(data_ + i % 2 * kPiece, from + i * kPiece, size(i), cudaMemcpyDeviceToHost, context.stream()),
          "cudaMemcpyAsync");
    check(cudaEventRecord(there_[i % 2], context.stream()), "cudaEventRecord");
  };
  fetch(0);
  for (size_t i = 0; i < pieces; ++i) {
    if (i + 1 < pieces) fetch(i + 1);
    check(cudaEventSynchronize(there_[i % 2]), "cudaEventSynchronize");
    move(context.pool(), to + i * kPiece, data_ + i % 2 * kPiece, size(i));
  }
}

PinnedNumbers::PinnedNumbers() : there_(untimed_event()) {}

PinnedNumbers::~PinnedNumbers() {
  cudaEventDestroy(there_);
  cudaFreeHost(data_);
}

void PinnedNumbers::send(const Tensor& from, Context& context) {
  if (from.spec.bytes() > room_) {
    cudaFreeHost(data_);
    data_ = pinned(room_ = from.spec.bytes());
  }
  bytes_ = from.spec.bytes();
  check(cudaMemcpyAsync(data_, from.data, bytes_, cudaMemcpyDeviceToHost, context.stream()), "cudaMemcpyAsync");
  check(cudaEventRecord(there_, context.stream()), "cudaEventRecord");
}

void PinnedNumbers::receive(std::span<std::byte> to) {
  if (bytes_ == 0) return;
  check_waited(cudaEventSynchronize(there_), "cudaEventSynchronize");
  std::memcpy(to.data(), data_, bytes_);
  bytes_ = 0;
}

// Keeps the address within 64 bytes, so that odd alignments are tried on the device too.
Tensor Staging::carry(const Tensor& host, Context& context) {
  if (!host) return host;
  Tensor out = host;
  out.pitch = 0;
  out.data = buffer_.data() + used_ + reinterpret_cast<uintptr_t>(host.data) % 64;
  out.device = Device::cuda;
  used_ += place_bytes(host);
  check(cudaMemcpyAsync(out.data, host.data, host.spec.bytes(), cudaMemcpyHostToDevice, context.stream()), "cudaMemcpyAsync");
  return out;
}

void Staging::run(const BoundCall& host, const std::function<void(const BoundCall&)>& run_call, Context& context) {
  if (buffer_.bytes() < place_bytes(host)) buffer_ = Buffer(2 * place_bytes(host));
  used_ = 0;
  BoundCall on_device = host;
  for (auto* list : {&on_device.in, &on_device.out, &on_device.saved, &on_device.dout, &on_device.din})
    for (Tensor& tensor : *list) tensor = carry(tensor, context);
  on_device.workspace = carry(host.workspace, context);
  run_call(on_device);
  const auto bring_back = [&](const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i])
        check(cudaMemcpyAsync(to[i].data, from[i].data, to[i].spec.bytes(), cudaMemcpyDeviceToHost, context.stream()),
              "cudaMemcpyAsync");
    }
  };
  if (host.call->backward) {
    bring_back(on_device.din, host.din);
  } else {
    bring_back(on_device.out, host.out);
    bring_back(on_device.saved, host.saved);
    bring_back(on_device.in, host.in);  // plain ops change them
  }
  context.wait();
}

}  // namespace fairway::cuda
