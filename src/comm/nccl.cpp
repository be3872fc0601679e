// Ranks over NCCL: tensors on devices, on a stream of their own that forks from the trainer's queue at a start and joins it at
// the wait, so that the host waits for nothing and everything may be captured in a graph. Pieces are sent as they are and added
// by our own kernels in the order of comm/tree.h; NCCL's only sums are of numbers with one owner. So no choice of NCCL's, ring
// or tree, changes a bit.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "base/device_error.h"
#include "comm/nccl_library.h"
#include "comm/nccl_start.h"
#include "comm/rendezvous.h"
#include "tensor/cuda_queue.h"
#include "tensor/cuda_spans.h"

namespace fairway {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw DeviceError(std::string(what) + " between ranks failed: " + cudaGetErrorString(status));
}

size_t piece_bytes(const Tensor& tensor, int pieces) { return tensor.spec.bytes() / static_cast<size_t>(pieces); }

class NcclRanks final : public Communicator {
 public:
  NcclRanks(const NcclLibrary& nccl, const Launch& launch, Communicator* host);
  ~NcclRanks() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_size() const override { return local_size_; }
  bool shares_updates() const override { return true; }
  bool host_waits() const override { return false; }
  void progress() override {}
  [[noreturn]] void end_all(const std::string& sentence, int status) override;

 private:
  void do_barrier() override;
  void do_broadcast(const Tensor& data, int from) override;
  void do_all_reduce(std::span<double> values) override;
  Request do_start_exchange(const Tensor& full, const Tensor& received) override;
  Request do_start_all_gather(const Tensor& shard, const Tensor& full) override;
  Request do_start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to) override;
  void do_wait(Request request) override;

  void check(ncclResult_t status, const char* what) const {
    if (status != ncclSuccess) throw DeviceError(std::string(what) + " failed: " + nccl_.error_string(status));
  }
  // Before anything is followed the host has waited for whatever was written: the default stream will do.
  cudaStream_t followed_stream() const { return followed() == nullptr ? nullptr : cuda::stream_of(*followed()); }
  Request fork(const char* kind);  // the ranks' stream now follows the queue
  Request land(Request request);   // all that was sent belongs to the request
  void swap(const std::byte* from, size_t from_step, std::byte* to, size_t bytes);
  void on_device(const Tensor& from, const Tensor& to, bool gather);
  std::byte* room(size_t bytes);
  void finish() const { fairway::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  const NcclLibrary& nccl_;
  Communicator* host_;
  int rank_ = 0, size_ = 1, local_size_ = 1;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t forked_ = nullptr;
  struct Flight {
    cudaEvent_t landed = nullptr;
    bool used = false;
  };
  std::vector<Flight> flights_;
  std::byte* room_ = nullptr;  // on the device, for host memory
  size_t room_bytes_ = 0;
  cuda::StreamSpans spans_{Lane::device_network};
};

NcclRanks::NcclRanks(const NcclLibrary& nccl, const Launch& launch, Communicator* host)
    : nccl_(nccl), host_(host), rank_(launch.rank), size_(launch.size), local_size_(launch.local_size) {
  ncclUniqueId id{};
  if (rank_ == 0) check(nccl_.get_unique_id(&id), "ncclGetUniqueId");
  const Tensor bytes = make_view(id.internal, {{NCCL_UNIQUE_ID_BYTES}, DType::u8});
  if (host_ != nullptr) {
    host_->broadcast(bytes);
    local_size_ = host_->local_size();
  } else if (size_ > 1) {
    hand_out(launch, {bytes.data, bytes.spec.bytes()});
  }
  check(nccl_.init_rank(&comm_, size_, id, rank_), "ncclCommInitRank (each rank needs a device of its own)");
  fairway::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  fairway::check(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming), "cudaEventCreate");
}

NcclRanks::~NcclRanks() {
  cudaStreamSynchronize(stream_);
  for (const Flight& flight : flights_) cudaEventDestroy(flight.landed);
  cudaEventDestroy(forked_);
  if (room_ != nullptr) cudaFree(room_);
  nccl_.destroy(comm_);
  cudaStreamDestroy(stream_);
}

// torchrun ends the others when a rank leaves with a failure.
void NcclRanks::end_all(const std::string& sentence, int status) {
  if (host_ != nullptr) host_->end_all(sentence, status);
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::fflush(stdout);
  std::fflush(stderr);
  _exit(status);
}

std::byte* NcclRanks::room(size_t bytes) {
  if (bytes > room_bytes_) {
    if (room_ != nullptr) fairway::check(cudaFree(room_), "cudaFree");
    void* made = nullptr;
    fairway::check(cudaMalloc(&made, bytes), "cudaMalloc");
    room_ = static_cast<std::byte*>(made);
    room_bytes_ = bytes;
  }
  return room_;
}

void NcclRanks::do_barrier() {
  if (host_ != nullptr) return host_->barrier();
  double nothing = 0;
  do_all_reduce({&nothing, 1});
}

void NcclRanks::do_broadcast(const Tensor& data, int from) {
  if (host_ != nullptr) return host_->broadcast(data, from);
  const size_t bytes = data.spec.bytes();
  std::byte* place = room(bytes);
  fairway::check(cudaMemcpyAsync(place, data.data, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
  check(nccl_.broadcast(place, place, bytes, ncclUint8, from, comm_, stream_), "ncclBroadcast");
  fairway::check(cudaMemcpyAsync(data.data, place, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
  finish();
}

void NcclRanks::do_all_reduce(std::span<double> values) {
  if (host_ != nullptr) return host_->all_reduce(values);
  std::byte* place = room(values.size_bytes());
  fairway::check(cudaMemcpyAsync(place, values.data(), values.size_bytes(), cudaMemcpyHostToDevice, stream_),
                 "cudaMemcpyAsync");
  check(nccl_.all_reduce(place, place, values.size(), ncclFloat64, ncclSum, comm_, stream_), "ncclAllReduce");
  fairway::check(cudaMemcpyAsync(values.data(), place, values.size_bytes(), cudaMemcpyDeviceToHost, stream_),
                 "cudaMemcpyAsync");
  finish();
}

Communicator::Request NcclRanks::fork(const char* kind) {
  fairway::check(cudaEventRecord(forked_, followed_stream()), "cudaEventRecord");
  fairway::check(cudaStreamWaitEvent(stream_, forked_, 0), "cudaStreamWaitEvent");
  spans_.begin(take_name(kind), stream_);
  Request id = 0;
  while (id < flights_.size() && flights_[id].used) ++id;
  if (id == flights_.size())
    fairway::check(cudaEventCreateWithFlags(&flights_.emplace_back().landed, cudaEventDisableTiming), "cudaEventCreate");
  flights_[id].used = true;
  return id;
}

Communicator::Request NcclRanks::land(Request request) {
  spans_.end(stream_);
  fairway::check(cudaEventRecord(flights_[request].landed, stream_), "cudaEventRecord");
  return request;
}

void NcclRanks::do_wait(Request request) {
  Flight& flight = flights_[request];
  flight.used = false;
  ncclResult_t state = ncclSuccess;
  check(nccl_.async_error(comm_, &state), "ncclCommGetAsyncError");
  if (state != ncclInProgress) check(state, "an exchange between ranks");
  fairway::check(cudaStreamWaitEvent(followed_stream(), flight.landed, 0), "cudaStreamWaitEvent");
}

// To rank q goes what lies q·from_step bytes behind `from`; what came from q lies q·bytes behind `to`.
void NcclRanks::swap(const std::byte* from, size_t from_step, std::byte* to, size_t bytes) {
  check(nccl_.group_start(), "ncclGroupStart");
  for (int q = 0; q < size_; ++q) {
    check(nccl_.send(from + static_cast<size_t>(q) * from_step, bytes, ncclUint8, q, comm_, stream_), "ncclSend");
    check(nccl_.recv(to + static_cast<size_t>(q) * bytes, bytes, ncclUint8, q, comm_, stream_), "ncclRecv");
  }
  check(nccl_.group_end(), "ncclGroupEnd");
}

// Host memory without MPI: there and back through the device, done on return.
void NcclRanks::on_device(const Tensor& from, const Tensor& to, bool gather) {
  const size_t sent = (from.spec.bytes() + 255) / 256 * 256;
  std::byte* place = room(sent + to.spec.bytes());
  fairway::check(cudaMemcpyAsync(place, from.data, from.spec.bytes(), cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
  swap(place, gather ? 0 : piece_bytes(from, size_), place + sent, piece_bytes(to, size_));
  fairway::check(cudaMemcpyAsync(to.data, place + sent, to.spec.bytes(), cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
  finish();
}

Communicator::Request NcclRanks::do_start_exchange(const Tensor& full, const Tensor& received) {
  const Request id = fork("exchange");
  if (full.device == Device::cpu) {
    on_device(full, received, false);
  } else {
    swap(full.data, piece_bytes(full, size_), received.data, piece_bytes(full, size_));
  }
  return land(id);
}

Communicator::Request NcclRanks::do_start_all_gather(const Tensor& shard, const Tensor& full) {
  const Request id = fork("gather");
  if (shard.device == Device::cpu) {
    on_device(shard, full, true);
  } else {
    swap(shard.data, 0, full.data, shard.spec.bytes());
  }
  return land(id);
}

Communicator::Request NcclRanks::do_start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to) {
  FAIRWAY_ASSERT(part.device == Device::cuda, "NCCL gathers what lies on devices");
  const Request id = fork("slice");
  const size_t step = static_cast<size_t>(stride) * size_of(part.spec.dtype);
  check(nccl_.group_start(), "ncclGroupStart");
  check(nccl_.send(part.data, part.spec.bytes(), ncclUint8, to, comm_, stream_), "ncclSend");
  for (int q = 0; q < size_ && rank_ == to; ++q)
    check(nccl_.recv(all.data + static_cast<size_t>(q) * step, part.spec.bytes(), ncclUint8, q, comm_, stream_), "ncclRecv");
  check(nccl_.group_end(), "ncclGroupEnd");
  return land(id);
}

}  // namespace

bool nccl_in_build() { return true; }

std::string nccl_version() {
  const NcclLibrary* nccl = NcclLibrary::open();
  int version = 0;
  if (nccl == nullptr || nccl->get_version(&version) != ncclSuccess) return "";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

std::unique_ptr<Communicator> start_nccl(const Launch& launch, Communicator* host) {
  const NcclLibrary* nccl = NcclLibrary::open();
  if (nccl == nullptr) throw InputError("--comm nccl: " + NcclLibrary::why_not());
  return std::make_unique<NcclRanks>(*nccl, launch, host);
}

}  // namespace fairway
