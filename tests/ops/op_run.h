// One case set up in memory and run on a backend: planned outputs, saved tensors, workspaces and gradients, all guarded.
#pragma once

#include <gtest/gtest.h>

#include "ops/arguments.h"
#include "ops/guarded.h"
#include "ops/op_case.h"

namespace fairway::ops_test {

template <class Op>
struct BackendUnderTest {
  const char* name;
  void (*forward)(const Op&, const Forward<Op>&);
  void (*backward)(const Op&, const Backward<Op>&);  // null for plain ops
};

struct RunSetup {
  DType dtype = DType::f32;
  int64_t offset = 0;  // elements past a cache line, of every tensor but the workspaces
};

inline constexpr size_t kNobody = ~size_t{0};
struct BackwardSetup {
  bool accumulate = false;
  size_t missing_dout = kNobody;  // index of an output without a gradient
  size_t unwanted_din = kNobody;  // index of an input whose gradient is not asked for
};

// Seed of what input i's gradient holds before it is added to.
inline uint64_t accumulated_seed(size_t i) { return 200 + i; }

// Whether a gradient can come through output i.
template <class Op>
bool carries_gradient(size_t i) {
  return !arguments_of(Op{}).out[i].is_constant;
}

template <class Op>
struct OpRun {
  const OpCase<Op>& example;
  RunSetup setup;
  OpPlan plan;
  std::vector<Guarded> in, out, saved, dout, din;
  Guarded workspace;

  OpRun(const OpCase<Op>& the_case, RunSetup the_setup) : example(the_case), setup(the_setup) {
    EXPECT_EQ(example.in.size(), tensor_count<typename Op::In>);
    for (size_t i = 0; i < example.in.size(); ++i) {
      const Slot& slot = example.in[i];
      in.push_back(slot.content == Content::absent ? Guarded() : Guarded({slot.shape, dtype_of(slot)}, setup.offset));
      if (in.back().tensor()) in.back().set(content_of(slot, i + 1));
    }
    plan = example.op.plan(args<typename Op::In>(in));
    for (const Spec& spec : plan.out) out.emplace_back(spec, setup.offset);
    for (const Spec& spec : plan.saved) saved.emplace_back(spec, setup.offset);
    EXPECT_EQ(out.size(), tensor_count<typename Op::Out>);
    EXPECT_EQ(saved.size(), tensor_count<typename Op::Saved>);
  }

  void forward(const BackendUnderTest<Op>& backend, Queue& queue) {
    workspace = Guarded({{static_cast<int64_t>(plan.forward_workspace)}, DType::u8}, 0);
    const auto before = bytes_of({&in});
    backend.forward(example.op, {args<typename Op::In>(in), args<typename Op::Out>(out), args<typename Op::Saved>(saved),
                                 workspace.tensor(), &queue});
    check_guards(backend.name);
    if constexpr (Differentiable<Op>) {
      EXPECT_TRUE(before == bytes_of({&in})) << backend.name << " changed an input";
    }
  }

  void backward(const BackendUnderTest<Op>& backend, const BackwardSetup& how, Queue& queue) {
    make_gradients(how);
    workspace = Guarded({{static_cast<int64_t>(plan.backward_workspace)}, DType::u8}, 0);
    auto wanted = args<typename Op::In>(din);
    if (how.accumulate)
      for (size_t i = 0; i < din.size(); ++i) reinterpret_cast<Tensor*>(&wanted)[i].accumulate = true;
    const auto before = bytes_of({&in, &out, &saved, &dout});
    backend.backward(example.op, {args<typename Op::In>(in), args<typename Op::Out>(out), args<typename Op::Saved>(saved),
                                  args<typename Op::Out>(dout), wanted, workspace.tensor(), &queue});
    check_guards(backend.name);
    EXPECT_TRUE(before == bytes_of({&in, &out, &saved, &dout})) << backend.name << " changed what it may only read";
  }

 private:
  using Group = std::vector<Guarded>;

  static std::vector<std::byte> bytes_of(std::initializer_list<const Group*> groups) {
    std::vector<std::byte> all;
    for (const Group* group : groups)
      for (const Guarded& guarded : *group) {
        const auto bytes = guarded.bytes();
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
    return all;
  }

  DType dtype_of(const Slot& slot) const {
    if (slot.content == Content::index || slot.content == Content::segments) return DType::i32;
    return slot.f64 ? DType::f64 : setup.dtype;
  }

  template <class Args>
  static Args args(const std::vector<Guarded>& tensors) {
    std::vector<Tensor> views;
    for (const Guarded& guarded : tensors) views.push_back(guarded.tensor());
    return to_args<Args>(views);
  }

  void make_gradients(const BackwardSetup& how) {
    dout.clear();
    din.clear();
    for (size_t i = 0; i < out.size(); ++i) {
      const Spec spec = out[i].tensor().spec;
      const bool missing = i == how.missing_dout || !carries_gradient<Op>(i);
      dout.push_back(missing ? Guarded() : Guarded(spec, setup.offset));
      if (!missing) dout.back().set(content_of(uniform(spec.shape), 100 + i));
    }
    for (size_t i = 0; i < in.size(); ++i) {
      const bool wanted = example.in[i].differentiated() && i != how.unwanted_din;
      din.push_back(wanted ? Guarded(in[i].tensor().spec, setup.offset) : Guarded());
      if (wanted && how.accumulate) din.back().set(content_of(uniform(example.in[i].shape), accumulated_seed(i)));
    }
  }

  void check_guards(const char* backend) const {
    for (const auto* group : {&in, &out, &saved, &dout, &din})
      for (const Guarded& guarded : *group)
        EXPECT_TRUE(guarded.intact()) << backend << " wrote outside of a tensor of " << example.label();
    EXPECT_TRUE(workspace.intact()) << backend << " wrote outside of the workspace of " << example.label();
  }
};

// Calls check(backward setup) for every combination worth trying: plain, accumulating, one gradient missing or unwanted.
template <class Op, class Check>
void for_each_backward(const OpCase<Op>& example, Check&& check) {
  check(BackwardSetup{});
  check(BackwardSetup{.accumulate = true});
  constexpr size_t kOutputs = tensor_count<typename Op::Out>;
  if (kOutputs > 1 && carries_gradient<Op>(1))  // else the only one would be missing
    for (size_t i = 0; i < kOutputs; ++i) check(BackwardSetup{.missing_dout = i});
  for (size_t i = 0; i < example.in.size(); ++i)
    if (example.in[i].differentiated()) check(BackwardSetup{.unwanted_din = i});
}

}  // namespace fairway::ops_test
