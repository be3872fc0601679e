// Runs recorded programs. An Executor is a backend at work; opening a recording there gives a Session, which has memory of the
// backend's kind for everything the program touches.
#pragma once

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/program.h"
#include "tensor/arena.h"

namespace fairway {

// cuda computes in bf16 with float masters, cuda_f32 in float throughout.
enum class Backend : uint8_t { ref, cpu, cuda, cuda_f32 };

std::string_view backend_name(Backend);

// A call with its tensors as they lie on the backend that runs it.
struct BoundCall {
  const Call* call;
  std::vector<Tensor> in, out, saved, dout, din;
  Tensor workspace;
};

// Numbers on their way to the host: sent by a session, read when the host needs them.
class Delivery {
 public:
  virtual ~Delivery() = default;
  virtual void receive() {}  // waits until the last numbers sent are in bytes()
  std::span<std::byte> bytes() { return bytes_; }
  void make_room(size_t bytes) {  // for what is sent next
    if (bytes > bytes_.size()) bytes_.resize(bytes);
  }
  template <class T>
  T number(size_t i) const {
    T out;
    std::memcpy(&out, bytes_.data() + i * sizeof(T), sizeof(T));
    return out;
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(16);  // zeros before the first are received
};

// Work that is always the same: sessions that run and exchanges between ranks, with nothing that waits on the host.
class Sequence {
 public:
  virtual ~Sequence() = default;
  // Does `body`, or what it did before without calling it; the answer is whether it was called.
  virtual bool run(const std::function<void()>& body) {
    body();
    return true;
  }
};

using Observer = std::function<void(std::string_view name, const Tensor& value)>;

// A program opened on a backend.
class Session {
 public:
  explicit Session(Recording recording) : recording_(std::make_unique<Recording>(std::move(recording))) {}
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Recording& recording() const { return *recording_; }
  const Program& program() const { return recording_->program; }
  // Takes its memory now instead of at the first run. Sessions that share memory take the least when the largest comes first.
  virtual void prepare() {}
  virtual void run() = 0;  // may return before the work is done
  // Tells after each call that it has been asked for: what reads its results in the order of the queue may begin.
  virtual void run_told(const std::function<void(size_t call)>& after) = 0;
  virtual void run_timed(std::vector<double>& seconds) = 0;  // adds the time of each call
  void run(const Observer& observer);                        // tells every observe point right after it is made

  // A value that is kept or apart, as the last run left it, brought to the host; of one that is observed, only while it is
  // told.
  virtual Tensor fetch(int32_t value) = 0;
  virtual Tensor fetched(int32_t value) const = 0;        // a kept or apart value as the last fetch() brought it
  virtual void deliver(int32_t value, Delivery& to) = 0;  // a kept or bound value, without waiting now
  virtual const std::vector<BoundCall>& calls() = 0;      // in the types that tensors have here
  virtual void clear_state() = 0;                         // values apart are zeros again

 private:
  std::unique_ptr<Recording> recording_;  // stable address: bound calls point into it
};

// The host's memory is where programs are described, filled and read. An executor on a device works on copies of its own: host
// code calls upload() after writing and download() before reading. On the CPU both cost nothing.
class Executor {
 public:
  explicit Executor(Queue& queue) : queue_(&queue) {}
  virtual ~Executor() = default;
  virtual Backend backend() const = 0;
  Queue& queue() { return *queue_; }  // in whose order everything happens
  bool on_device() const { return queue_->device() != Device::cpu; }

  // Sessions that never run at the same time may share the memory of their planned values: `activations`, of at least
  // arena_bytes. A device shares its own among all of them.
  virtual std::unique_ptr<Session> open(Recording recording, Arena* activations = nullptr) = 0;
  virtual std::unique_ptr<Sequence> open_sequence() { return std::make_unique<Sequence>(); }
  virtual std::unique_ptr<Delivery> open_delivery() { return std::make_unique<Delivery>(); }
  virtual void run_call(const BoundCall&) = 0;  // one call on host memory

  virtual void upload(const Tensor&) {}  // the host has written this part of an arena since the last run
  // Gives an input the numbers that lie elsewhere on the host, which may change right after. A device that has the input takes
  // them from there; the host's own copy of the input is then as it was.
  virtual void fill(const Tensor& input, const Tensor& from) { std::memcpy(input.data, from.data, input.spec.bytes()); }
  virtual void download(const Tensor&) {}                       // the host is about to read it
  virtual Tensor resident(const Tensor& host) { return host; }  // where sessions see it
  virtual void wait() {}                                        // until everything that was asked for is done
  // Memory that is free where sessions work, in bytes; on the CPU nothing is counted.
  virtual size_t free_bytes() { return std::numeric_limits<size_t>::max(); }
  virtual int devices() const { return 1; }  // that the ranks of this machine are spread over

 private:
  Queue* queue_;
};

}  // namespace fairway
