// Records a model once; finish() appends its backward pass and plans the memory. Nothing runs here.
#pragma once

#include <initializer_list>
#include <map>
#include <string_view>
#include <tuple>

#include "autograd/program.h"

namespace fairway {

struct Var {
  int32_t id = kNoValue;
  explicit operator bool() const { return id != kNoValue; }
};

class Tape {
 public:
  // Memory of the caller, read (or updated in place by plain ops) by the program; never differentiated. A slot, which is bound
  // to `memory` unless the recording is opened with other bindings; the same part of an arena is one slot.
  Var input(std::string_view name, const Tensor& memory);
  // A parameter: its gradient is added to `gradient`, which the caller clears when a step begins; absent, there is none.
  Var param(ParamSlot which, std::string_view name, const Tensor& value, const Tensor& gradient);
  // Memory that each session has for itself: zeros at first, then what the last run left.
  Var state(std::string_view name, Spec spec);

  // Records one op; gives its outputs and saved tensors under their names: made.out.y, made.saved.post.
  template <class Op>
  auto call(const Op& op, std::initializer_list<Var> in) {
    const std::vector<Var> made = record(op, in);
    const auto outputs = std::span(made).first(tensor_count<typename Op::Out>);
    const auto rest = std::span(made).subspan(outputs.size());
    struct Made {
      decltype(outs_of<Op>(outputs)) out;
      decltype(saved_of<Op>(rest)) saved;
    };
    return Made{outs_of<Op>(outputs), saved_of<Op>(rest)};
  }
  template <class Op>
  Var one(const Op& op, std::initializer_list<Var> in) {  // for ops whose first output is all that is wanted
    return record(op, in).front();
  }

  void scope(std::string label) { label_ = std::move(label); }  // names the calls that follow
  void observe(std::string_view name, Var value);
  void keep(Var value) { program_.kept.push_back(value.id); }  // its memory is not reused

  // Forward and backward of `loss`; `loss_gradient` is its incoming gradient (an input of one element).
  Recording finish(Var loss, Var loss_gradient) &&;
  // Only what was recorded.
  Recording finish() &&;

 private:
  template <class Op>
  std::vector<Var> record(const Op& op, std::initializer_list<Var> in) {  // its outputs, then its saved tensors
    return call_any(op, op.plan(to_args<typename Op::In>(specs(in))), in, tensor_count<typename Op::In>);
  }
  std::vector<Tensor> specs(std::initializer_list<Var> in) const;
  std::vector<Var> call_any(const AnyOp& op, const OpPlan& plan, std::initializer_list<Var> in, size_t arity);
  int32_t add_value(std::string name, Spec spec);
  int32_t bound_value(const Slot& slot, std::string name, const Tensor& memory);
  Recording recorded();
  void append_backward(size_t forward_call);
  int32_t gradient_of(int32_t value, bool& accumulate);

  struct Node {
    bool needs_grad = false;
    int32_t grad = kNoValue;    // the value that holds the gradient, once there is one
    bool grad_written = false;  // later contributions add
  };
  Program program_;
  std::vector<Node> nodes_;
  Bindings bindings_;
  // One value for each part of an arena and shape: (memory, offset, shape), and one for each parameter.
  std::map<std::tuple<uint64_t, ptrdiff_t, std::string>, int32_t> inputs_;
  std::map<ParamSlot, int32_t> params_;
  std::vector<size_t> backward_workspaces_;
  std::string label_;
};

// Gives every planned value an offset such that values alive at the same time never overlap.
void plan_memory(Program&);

}  // namespace fairway
