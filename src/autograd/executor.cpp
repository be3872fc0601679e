#include "autograd/executor.h"

#include <chrono>

#include "autograd/eager.h"
#include "autograd/op_table.h"
#include "base/error.h"
#include "ops/cuda/device.h"

namespace fairway {

std::string_view backend_name(Backend backend) {
  switch (backend) {
    case Backend::ref: return "ref";
    case Backend::cpu: return "cpu";
    case Backend::cuda: return "cuda";
    case Backend::cuda_f32: return "cuda-f32";
  }
  return "?";
}

Backend parse_backend(std::string_view name) {
  if (name == "ref") return Backend::ref;
  if (name == "cpu") return Backend::cpu;
  if (name == "cuda" || name == "cuda-f32") {
    if (const cuda::Support& support = cuda::support(); support.usable.empty())
      throw InputError("--backend " + std::string(name) + ": " + support.problem + "; use cpu or ref");
    return name == "cuda" ? Backend::cuda : Backend::cuda_f32;
  }
  throw InputError("--backend " + std::string(name) + ": expected cpu, cuda or ref (cuda-f32: in float)");
}

BoundProgram::BoundProgram(Program program)
    : program_(std::make_unique<Program>(std::move(program))),
      own_(std::make_unique<Arena>("activations", program_->arena_bytes)) {
  resolve(own_->base());
}

BoundProgram::BoundProgram(Program program, Arena& shared) : program_(std::make_unique<Program>(std::move(program))) {
  FAIRWAY_ASSERT(shared.capacity() >= program_->arena_bytes, "the shared arena is smaller than the program needs");
  resolve(shared.base());
}

Tensor BoundProgram::tensor(int32_t id) const {
  if (id == kNoValue) return {};
  const Value& value = program_->values[static_cast<size_t>(id)];
  return value.external ? value.external : make_view(base_ + value.offset, value.spec);
}

void BoundProgram::resolve(std::byte* base) {
  base_ = base;
  const auto tensors = [&](const std::vector<int32_t>& ids) {
    std::vector<Tensor> out;
    out.reserve(ids.size());
    for (int32_t id : ids) out.push_back(tensor(id));
    return out;
  };
  for (const Call& call : program_->calls) {
    BoundCall bound{&call, tensors(call.in), tensors(call.out), tensors(call.saved), tensors(call.dout), tensors(call.din), {}};
    for (size_t i = 0; i < bound.din.size(); ++i) bound.din[i].accumulate = call.accumulate[i];
    if (call.workspace_bytes > 0) {
      bound.workspace = make_view(base_ + call.workspace_offset, {{static_cast<int64_t>(call.workspace_bytes)}, DType::u8});
    }
    calls_.push_back(std::move(bound));
  }
}

void Executor::deliver(const BoundProgram& program, int32_t value, Delivery& to) { deliver(program.tensor(value), to); }

void Executor::deliver(const Tensor& external, Delivery& to) {
  FAIRWAY_ASSERT(external.spec.bytes() <= to.bytes.size(), "a delivery is a few numbers");
  std::memcpy(to.bytes.data(), external.data, external.spec.bytes());
}

void Executor::run(const BoundProgram& program) {
  for (const BoundCall& call : program.calls()) run_call(call);
}

void Executor::run(const BoundProgram& program, const Observer& observer) {
  auto point = program.program().observed.begin();
  for (size_t i = 0; i < program.calls().size(); ++i) {
    run_call(program.calls()[i]);
    for (; point != program.program().observed.end() && point->call == i; ++point)
      observer(point->name, program.tensor(point->value));
  }
}

void Executor::run_told(const BoundProgram& program, const std::function<void(size_t call)>& after) {
  for (size_t i = 0; i < program.calls().size(); ++i) {
    run_call(program.calls()[i]);
    after(i);
  }
}

double Executor::least_bytes(const BoundProgram& program, size_t call) { return traffic_of(program.calls()[call]); }

void Executor::run_timed(const BoundProgram& program, std::vector<double>& seconds) {
  seconds.resize(program.calls().size());
  for (size_t i = 0; i < program.calls().size(); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run_call(program.calls()[i]);
    seconds[i] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
}

std::unique_ptr<Executor> make_executor(Backend backend, Queue& queue) {
  switch (backend) {
    case Backend::ref: return make_ref_executor(queue);
    case Backend::cpu: return make_cpu_executor(queue);
    case Backend::cuda:
    case Backend::cuda_f32: break;
  }
  return make_cuda_executor(backend, queue);
}

}  // namespace fairway
