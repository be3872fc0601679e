// What every op looks like. An op is a struct of plain attributes with named tensor arguments:
//   InOf / OutOf / SavedOf<T> — the names of its arguments; In, Out and Saved are those of Tensors, for calls; Saved is what
//                             forward leaves for backward;
//   kIn / kOut / kSaved     — what each argument is (ops/arg.h);
//   OpPlan plan(const In&)  — shape rule: called with tensors that have specs but no data; throws "[name] …".
// Each backend is a namespace (fairway::ref, fairway::cpu, later fairway::cuda) that defines
//   void forward (const Op&, const Forward<Op>&);
//   void backward(const Op&, const Backward<Op>&);
// for every entry of ops.def; a missing one is a link error. Nothing in them allocates.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/arg.h"
#include "tensor/queue.h"
#include "tensor/tensor.h"

namespace fairway {

struct OpPlan {
  std::vector<Spec> out{};
  std::vector<Spec> saved{};
  size_t forward_workspace = 0;   // bytes, alive during the call only
  size_t backward_workspace = 0;  // bytes
  double flops = 0;               // of the forward pass; matrix products and attention only
};

struct None {};  // for ops without outputs or saved tensors

template <class Op>
struct Forward {
  typename Op::In in;
  typename Op::Out out;
  typename Op::Saved saved;
  Tensor workspace;  // u8
  Queue* queue = nullptr;
};

// dout and din hold the gradients of out and in. A member of din that is absent is not wanted; one with accumulate set is
// added to. A member of dout that is absent is zero.
template <class Op>
struct Backward {
  typename Op::In in;
  typename Op::Out out;
  typename Op::Saved saved;
  typename Op::Out dout;
  typename Op::In din;
  Tensor workspace;  // u8
  Queue* queue = nullptr;
};

// Some T for each output, and for each saved tensor, under their names.
template <class Op, class T>
auto outs_of(std::span<const T> values) {
  if constexpr (std::is_same_v<typename Op::Out, None>)
    return None{};
  else
    return by_name<Op::template OutOf>(values);
}
template <class Op, class T>
auto saved_of(std::span<const T> values) {
  if constexpr (std::is_same_v<typename Op::Saved, None>)
    return None{};
  else
    return by_name<Op::template SavedOf>(values);
}

template <class Op>
concept Differentiable = Op::differentiable;

// Argument structs hold nothing but Tensors, so they convert to and from arrays without a list of their members.
template <class Args>
inline constexpr size_t tensor_count = sizeof(Args) / sizeof(Tensor);
template <>
inline constexpr size_t tensor_count<None> = 0;

template <class Args>
Args to_args(std::span<const Tensor> tensors) {
  Args args{};
  if constexpr (tensor_count < Args >> 0) {
    static_assert(sizeof(Args) % sizeof(Tensor) == 0 && std::is_trivially_copyable_v<Args>);
    for (size_t i = 0; i < tensor_count<Args> && i < tensors.size(); ++i) reinterpret_cast<Tensor*>(&args)[i] = tensors[i];
  }
  return args;
}

// Refuses wrong shapes: throws InputError "[op] sentence".
void require(bool condition, std::string_view op, const std::string& sentence);

}  // namespace fairway
