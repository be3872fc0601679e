// Runs recorded programs. A BoundProgram has every tensor resolved to an address; an Executor walks its calls on one backend.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "autograd/program.h"
#include "tensor/arena.h"

namespace fairway {

// cuda computes in bf16 with float masters, cuda_f32 in float throughout.
enum class Backend : uint8_t { ref, cpu, cuda, cuda_f32 };

std::string_view backend_name(Backend);
Backend parse_backend(std::string_view name);  // throws InputError, naming what this program has

struct BoundCall {
  const Call* call;
  std::vector<Tensor> in, out, saved, dout, din;
  Tensor workspace;
};

// Keeps the program and the arena of its planned values. Programs that never run at the same time may share one arena.
class BoundProgram {
 public:
  explicit BoundProgram(Program program);
  BoundProgram(Program program, Arena& shared);

  const Program& program() const { return *program_; }
  const std::vector<BoundCall>& calls() const { return calls_; }
  Tensor tensor(int32_t value) const;                                  // planned values are only valid while alive
  std::shared_ptr<void>& device_copy() const { return device_copy_; }  // kept here by a device executor, freed with the program

 private:
  void resolve(std::byte* base);
  std::unique_ptr<Program> program_;  // stable address: calls_ point into it
  std::unique_ptr<Arena> own_;
  std::byte* base_ = nullptr;
  std::vector<BoundCall> calls_;
  mutable std::shared_ptr<void> device_copy_;
};

// A run of programs and exchanges that is always the same: what a device made of it.
struct Sequence {
  int64_t runs = 0;
  std::shared_ptr<void> device_copy;
};

// A few numbers on their way to the host. What it holds of a device is made at its first use and serves again.
struct Delivery {
  alignas(8) std::array<std::byte, 16> bytes{};
  std::shared_ptr<void> device_part;
  template <class T>
  T number(size_t i) const {
    T out;
    std::memcpy(&out, bytes.data() + i * sizeof(T), sizeof(T));
    return out;
  }
};

using Observer = std::function<void(std::string_view name, const Tensor& value)>;

// The host's memory is where programs are described, filled and read. An executor on a device works on copies of its own, so
// whoever writes or reads program memory from the host says so; on the CPU that costs nothing.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void run_call(const BoundCall&) = 0;  // on host memory
  virtual Backend backend() const = 0;

  // Gives a program its place before its first run. Programs that share memory take the least when the largest comes first.
  virtual void prepare(const BoundProgram&) {}
  virtual void run(const BoundProgram&);                   // may return before the work is done
  virtual void run(const BoundProgram&, const Observer&);  // tells every observe point right after it is made
  virtual void run_timed(const BoundProgram&, std::vector<double>& seconds);  // adds the time of each call
  // Tells after each call that it has been asked for: what reads its results in the order of stream() may begin.
  virtual void run_told(const BoundProgram&, const std::function<void(size_t call)>& after);
  // Runs `body`, which runs programs and lets nothing wait on the host. A device may remember what it did and do that again
  // without calling it; the answer is whether it was called.
  virtual bool run_sequence(Sequence&, const std::function<void()>& body) {
    body();
    return true;
  }

  virtual void to_device(const Tensor&) {}  // the host has written this external tensor since the last run
  virtual void to_host(const Tensor&) {}    // the host is about to read this external tensor
  // A kept value, or a parameter's, as the last run left it.
  virtual Tensor fetch(const BoundProgram& program, int32_t value) { return program.tensor(value); }
  // The same numbers as fetch() and to_host() bring, at most 16 bytes, without waiting now: receive() does.
  virtual void deliver(const BoundProgram& program, int32_t value, Delivery& to);
  virtual void deliver(const Tensor& external, Delivery& to);
  virtual void receive(Delivery&) {}
  virtual void wait() {}  // until everything that was asked for is done

  // Where an external tensor lies while programs run: itself, or its copy on the device.
  virtual Tensor place_of(const Tensor& external) { return external; }
  virtual void* stream() const { return nullptr; }  // the device's queue (a cudaStream_t); null on the CPU

  // For tables of where time goes (autograd/op_table.h). Least traffic of a call in the types that tensors have here; what the
  // maker's library takes for the same matrix work, 0 where it has none; memory's peak in bytes a second, 0 if not known.
  virtual double least_bytes(const BoundProgram&, size_t call);
  virtual double library_seconds(const BoundProgram&, size_t) { return 0; }
  virtual double peak_bytes() const { return 0; }
};

std::unique_ptr<Executor> make_executor(Backend, Queue&);

}  // namespace fairway
