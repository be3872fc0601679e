#include "autograd/tape.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tensor/arena.h"

namespace fairway {

std::string_view op_name(const AnyOp& any) {
  return std::visit(
      [](const auto& op) -> std::string_view {
        if constexpr (requires { op.name; }) return op.name;
        return "none";
      },
      any);
}

double forward_flops(const Program& program) {
  double total = 0;
  for (const Call& call : program.calls) total += call.backward ? 0 : call.flops;
  return total;
}

int32_t Tape::add_value(std::string name, Spec spec) {
  program_.values.push_back({.name = std::move(name), .spec = spec});
  nodes_.emplace_back();
  return static_cast<int32_t>(program_.values.size() - 1);
}

int32_t Tape::bound_value(const Slot& slot, std::string name, const Tensor& memory) {
  FAIRWAY_ASSERT(memory.present, "'" + name + "' is absent");
  const auto number = static_cast<int32_t>(program_.slots.size());
  const int32_t id = add_value(std::move(name), memory.spec);
  program_.slots.push_back(slot);
  program_.values.back().place = Value::Place::bound;
  program_.values.back().slot = number;
  bindings_.bind(number, memory);
  return id;
}

Var Tape::input(std::string_view name, const Tensor& memory) {
  if (memory.memory == nullptr) return {bound_value({}, std::string(name), memory)};
  const auto key = std::make_tuple(memory.memory->id(), memory.data - memory.memory->data(), memory.spec.shape.text());
  const auto [at, is_new] = inputs_.try_emplace(key, kNoValue);
  if (is_new) at->second = bound_value({}, std::string(name), memory);
  return {at->second};
}

Var Tape::param(ParamSlot which, std::string_view name, const Tensor& value, const Tensor& gradient) {
  const auto [at, is_new] = params_.try_emplace(which, kNoValue);
  if (!is_new) return {at->second};
  at->second = bound_value({Slot::Kind::parameter, which}, std::string(name), value);
  if (!gradient) return {at->second};
  const int32_t grad = bound_value({Slot::Kind::gradient, which}, "d " + std::string(name), gradient);
  nodes_[static_cast<size_t>(at->second)] = {.needs_grad = true, .grad = grad, .grad_written = true};
  return {at->second};
}

Var Tape::state(std::string_view name, Spec spec) {
  const int32_t id = add_value(std::string(name), spec);
  program_.values.back().place = Value::Place::apart;
  return {id};
}

std::vector<Tensor> Tape::specs(std::initializer_list<Var> in) const {
  std::vector<Tensor> out;
  for (Var var : in) {
    Tensor tensor;
    if (var) {
      tensor.spec = program_.values[static_cast<size_t>(var.id)].spec;
      tensor.present = true;
    }
    out.push_back(tensor);
  }
  return out;
}

std::vector<Var> Tape::call_any(const AnyOp& op, const OpPlan& plan, std::initializer_list<Var> in, size_t arity) {
  const std::string name(op_name(op));
  FAIRWAY_ASSERT(in.size() == arity,
                 "[" + name + "] takes " + std::to_string(arity) + " arguments, got " + std::to_string(in.size()));
  Call call{.op = op, .label = label_, .workspace_bytes = plan.forward_workspace, .flops = plan.flops};
  bool needs_grad = false;
  for (Var var : in) {
    call.in.push_back(var.id);
    needs_grad |= var && nodes_[static_cast<size_t>(var.id)].needs_grad;
  }
  std::vector<Var> results;
  const std::string prefix = label_.empty() ? name : label_ + "." + name;
  for (const Spec& spec : plan.out) {
    const int32_t id = add_value(prefix, spec);
    nodes_.back().needs_grad = needs_grad;
    call.out.push_back(id);
    results.push_back({id});
  }
  for (const Spec& spec : plan.saved) {
    const int32_t id = add_value(prefix + ".saved", spec);
    call.saved.push_back(id);
    results.push_back({id});
  }
  program_.calls.push_back(std::move(call));
  backward_workspaces_.push_back(plan.backward_workspace);
  return results;
}

void Tape::observe(std::string_view name, Var value) {
  FAIRWAY_ASSERT(!program_.calls.empty(), "observe point '" + std::string(name) + "' comes before the first call");
  program_.observed.push_back({std::string(name), value.id, program_.calls.size() - 1});
}

// The value that takes the next contribution to d(value); `accumulate` tells whether one is there already.
int32_t Tape::gradient_of(int32_t value, bool& accumulate) {
  Node& node = nodes_[static_cast<size_t>(value)];
  if (node.grad == kNoValue) {
    const Value& of = program_.values[static_cast<size_t>(value)];
    const int32_t grad = add_value("d " + of.name, of.spec);
    nodes_[static_cast<size_t>(value)].grad = grad;
  }
  Node& current = nodes_[static_cast<size_t>(value)];
  accumulate = current.grad_written;
  current.grad_written = true;
  return current.grad;
}

void Tape::append_backward(size_t forward_call) {
  Call back = program_.calls[forward_call];
  bool reached = false;
  for (int32_t out : back.out) {
    const Node& node = nodes_[static_cast<size_t>(out)];
    back.dout.push_back(node.grad_written ? node.grad : kNoValue);
    reached |= node.grad_written;
  }
  if (!reached) return;
  back.backward = true;
  back.workspace_bytes = backward_workspaces_[forward_call];
  std::vector<std::pair<int32_t, int32_t>> twice;  // (gradient, contribution of a second use in the same call)
  std::set<int32_t> seen;
  for (int32_t in : back.in) {
    bool accumulate = false;
    int32_t grad = kNoValue;
    if (in != kNoValue && nodes_[static_cast<size_t>(in)].needs_grad) {
      grad = gradient_of(in, accumulate);
      if (!seen.insert(in).second) {  // two arguments may not share one output buffer
        const int32_t extra =
            add_value("d " + program_.values[static_cast<size_t>(in)].name, program_.values[static_cast<size_t>(in)].spec);
        twice.emplace_back(grad, extra);
        grad = extra;
        accumulate = false;
      }
    }
    back.din.push_back(grad);
    back.accumulate.push_back(accumulate);
  }
  program_.calls.push_back(std::move(back));
  for (const auto& [target, source] : twice) {
    program_.calls.push_back(
        {.op = AccumulateScaled{}, .label = program_.calls.back().label, .in = {target, source, kNoValue}});
  }
}

Recording Tape::finish(Var loss, Var loss_gradient) && {
  Node& node = nodes_[static_cast<size_t>(loss.id)];
  node.grad = loss_gradient.id;
  node.grad_written = true;
  const size_t forward_calls = program_.calls.size();
  for (size_t i = forward_calls; i-- > 0;) append_backward(i);
  return recorded();
}

Recording Tape::finish() && { return recorded(); }

Recording Tape::recorded() {
  plan_memory(program_);
  return {std::move(program_), std::move(bindings_)};
}

}  // namespace fairway
