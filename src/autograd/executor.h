// Runs recorded programs. A BoundProgram has every tensor resolved to an address; an Executor walks its calls on one backend.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "autograd/program.h"
#include "tensor/arena.h"

namespace fairway {

enum class Backend : uint8_t { ref, cpu };

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
  Tensor tensor(int32_t value) const;  // planned values are only valid while alive

 private:
  void resolve(std::byte* base);
  std::unique_ptr<Program> program_;  // stable address: calls_ point into it
  std::unique_ptr<Arena> own_;
  std::byte* base_ = nullptr;
  std::vector<BoundCall> calls_;
};

using Observer = std::function<void(std::string_view name, const Tensor& value)>;

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void run_call(const BoundCall&) = 0;
  virtual Backend backend() const = 0;

  void run(const BoundProgram&);
  void run(const BoundProgram&, const Observer&);                     // tells every observe point right after it is made
  void run_timed(const BoundProgram&, std::vector<double>& seconds);  // adds the time of each call
};

std::unique_ptr<Executor> make_executor(Backend, Queue&);

}  // namespace fairway
