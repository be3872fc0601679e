// The reference backend with the types that a device's programs have in bf16 (ops/cuda/lowering): activations and their
// gradients are rounded after every call, matrices before they are read. What such a run gives is what the bounds for bf16 are
// made for, and it can be had without a device.
#pragma once

#include <bit>
#include <cstring>
#include <deque>

#include "autograd/host_executor.h"
#include "backends/backends.h"
#include "ops/arguments.h"

namespace fairway {

class Bf16Executor final : public Executor {
 public:
  explicit Bf16Executor(Queue& queue) : Executor(queue), inner_(make_ref_executor(queue)) {}
  Backend backend() const override { return Backend::cuda; }
  void run_call(const BoundCall& bound) override { inner_->run_call(bound); }
  std::unique_ptr<Session> open(Recording recording, Arena* activations) override {
    return std::make_unique<Rounding>(std::move(recording), activations, *this);
  }

 private:
  class Rounding final : public HostSession {
   public:
    Rounding(Recording recording, Arena* activations, Bf16Executor& executor)
        : HostSession(std::move(recording), activations, executor), executor_(&executor) {}
    using Session::run;
    void run() override {
      run_told([](size_t) {});
    }
    void run_told(const std::function<void(size_t call)>& after) override {
      for (size_t i = 0; i < calls().size(); ++i) {
        executor_->run_rounded(calls()[i], program());
        after(i);
      }
    }

   private:
    Bf16Executor* executor_;
  };

  static void round(const Tensor& tensor) {
    if (!tensor || tensor.spec.dtype != DType::f32) return;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const auto bits = std::bit_cast<uint32_t>(tensor.as<float>()[i]);
      tensor.as<float>()[i] = std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
    }
  }
  void run_rounded(const BoundCall& bound, const Program& program) {
    const Call& call = *bound.call;
    const bool learns = std::visit(
        []<class Op>(const Op&) {
          if constexpr (requires { Op::differentiable; }) return Op::differentiable;
          return false;
        },
        call.op);
    const Arguments declared = arguments_of(call.op);
    BoundCall rounded = bound;
    std::deque<std::vector<float>> copies;
    const auto external = [&](int32_t id) { return program.slot_of(id) != nullptr; };
    for (size_t i = 0; i < call.in.size(); ++i) {
      Tensor& in = rounded.in[i];
      // Mixes and gates of several rows too, which a device keeps in float: the bounds were measured so.
      const bool rows = external(call.in[i]) && in.spec.dtype == DType::f32 && in.spec.shape.rank >= 2;
      const bool iterated = std::holds_alternative<NewtonSchulz>(call.op);
      if (!iterated && !(learns && rows && !declared.in[i].is_constant)) continue;
      std::vector<float>& copy = copies.emplace_back(static_cast<size_t>(in.numel()));
      std::memcpy(copy.data(), in.data, in.spec.bytes());
      in = make_view(copy.data(), in.spec);
      round(in);
    }
    inner_->run_call(rounded);
    if (!learns) return;
    for (size_t i = 0; i < call.out.size() && !call.backward; ++i)
      if (!external(call.out[i]) && declared.out[i].in_working_precision()) round(bound.out[i]);
    for (size_t i = 0; i < call.din.size() && call.backward; ++i)
      if (!external(call.din[i])) round(bound.din[i]);
  }

  std::unique_ptr<Executor> inner_;
};

}  // namespace fairway
