#include "ops/cuda/context.h"

#include <string>
#include <utility>

#include "base/device_error.h"
#include "base/fault.h"
#include "ops/cuda/attention_fused.h"
#include "ops/cuda/gemm.h"

namespace fairway::cuda {
namespace {

constexpr size_t kScratchChunk = size_t{256} << 20;
constexpr size_t kScratchAlignment = 256;

// A machine may hold cards of several kinds, and CUDA begins with one of its own choice.
void require_usable_device() {
  if (devices().empty()) throw InputError(support().problem);
  int current = 0;
  check(cudaGetDevice(&current), "cudaGetDevice");
  for (const DeviceInfo& device : devices())
    if (device.index == current) return;
  check(cudaSetDevice(devices().front().index), "cudaSetDevice");
}

Failure::Kind kind_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation: return Failure::Kind::no_room;
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorHardwareStackError:
    case cudaErrorSystemNotReady:
    case cudaErrorUnknown: return Failure::Kind::lost;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure: return Failure::Kind::kernel;
    default: return Failure::Kind::other;
  }
}

[[noreturn]] void fail(cudaError_t status, const std::string& call, size_t asked) {
  cudaGetLastError();  // told here; it is no error of the next call
  Failure failure{kind_of(status), call, cudaGetErrorString(status), asked, 0};
  size_t all = 0;
  if (failure.kind == Failure::Kind::no_room && cudaMemGetInfo(&failure.free, &all) != cudaSuccess) failure.free = 0;
  throw DeviceError(sentence_of(failure));
}

}  // namespace

void check(cudaError_t status, const char* what, std::source_location where) {
  if (status == cudaSuccess) return;
  fail(status, std::string(what) + " (" + where.file_name() + ":" + std::to_string(where.line()) + ")", 0);
}

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  const cudaError_t status =
      fault::armed && fault::strikes(fault::Event::room) ? cudaErrorMemoryAllocation : cudaMalloc(&data, bytes);
  if (status != cudaSuccess) fail(status, "cudaMalloc", bytes);
  data_ = static_cast<std::byte*>(data);
}

Buffer::Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) cudaFree(data_);
}

Context::Context(ThreadPool& pool) : StreamQueue(pool) {
  require_usable_device();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  for (const DeviceInfo& info : devices())
    if (info.index == device) path_ = path_of(info);
  gemms_ = std::make_unique<Gemms>(path_);
  fused_heads_ = std::make_unique<FusedHeads>();
}

Context::~Context() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void Context::keep_rows_alike(bool on) {
  rows_alike_ = on;
  gemms_->keep_rows_alike(on);
}

std::byte* Context::device_scratch(size_t bytes) {
  bytes = (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  if (chunks_.empty() || used_ + bytes > chunks_.back().bytes()) {
    chunks_.emplace_back(std::max(2 * bytes, kScratchChunk));
    used_ = 0;
  }
  std::byte* out = chunks_.back().data() + used_;
  used_ += bytes;
  return out;
}

}  // namespace fairway::cuda
