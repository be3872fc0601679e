#include "ops/cuda/lowering.h"

#include <algorithm>

#include "autograd/tape.h"
#include "ops/arguments.h"
#include "ops/cuda/mlp_saved.h"

namespace fairway::cuda {
namespace {

template <class Op>
bool is(const Call& call) {
  return std::holds_alternative<Op>(call.op);
}

// Saved values that a backward pass reads.
std::set<int32_t> differentiated(const Program& program) {
  std::set<int32_t> ids;
  for (const Call& call : program.calls)
    if (call.backward) ids.insert(call.saved.begin(), call.saved.end());
  return ids;
}

// Values that somebody reads besides the backward pass of the call that makes them.
std::set<int32_t> read_by_others(const Program& program) {
  std::set<int32_t> ids(program.kept.begin(), program.kept.end());
  for (const Call& call : program.calls) ids.insert(call.in.begin(), call.in.end());
  return ids;
}

// A head whose logits nobody else reads may keep what its gradient wants instead, and nothing where there is none. Whoever
// looked on would be told something else, so nobody is.
void keep_no_logits(Program& program) {
  const std::set<int32_t> read = read_by_others(program), in_gradients = differentiated(program);
  std::set<int32_t> unread;
  for (Call& call : program.calls) {
    auto* head = std::get_if<SoftcapCrossEntropy>(&call.op);
    if (head == nullptr) continue;
    const auto saved = places_by_name<SoftcapCrossEntropy::SavedOf>(call.saved);
    if (read.contains(saved.logits)) continue;
    head->logits_wanted = false;
    unread.insert(saved.logits);
    if (!in_gradients.contains(saved.logits)) saved.logits = kNoValue;
  }
  std::erase_if(program.observed, [&](const ObservePoint& point) { return unread.contains(point.value); });
}

// In bf16 an MLP keeps signs in place of act_grad, and nothing where nobody takes its gradient.
void keep_signs(Program& program) {
  std::set<int32_t> wanted = differentiated(program);
  wanted.insert(program.kept.begin(), program.kept.end());
  for (Call& call : program.calls) {
    if (!is<Mlp>(call) || call.backward) continue;
    const auto saved = places_by_name<Mlp::SavedOf>(call.saved);
    if (wanted.contains(saved.act_grad))
      program.values[static_cast<size_t>(saved.act_grad)].spec =
          signs_spec(program.values[static_cast<size_t>(saved.post)].spec);
    else
      saved.act_grad = kNoValue;
  }
}

class Typing {
 public:
  explicit Typing(Program& program) : program_(program) {}

  void assign() {
    for (const Call& call : program_.calls) {
      if (call.backward) {
        for (size_t i = 0; i < call.din.size(); ++i) gradient(call, i);
        continue;
      }
      const Arguments declared = arguments_of(call.op);
      for (size_t i = 0; i < call.out.size(); ++i) {
        set(call.out[i], type_of(declared.out[i]));
        if (declared.out[i].kind == ArgKind::matrix) weights_.insert(call.out[i]);
      }
      for (size_t i = 0; i < call.saved.size(); ++i) set(call.saved[i], type_of(declared.saved[i]));
    }
  }

 private:
  static DType type_of(const Arg& declared) { return declared.in_working_precision() ? DType::bf16 : DType::f32; }
  // A gradient has its value's type; that of a quantized weight is summed in float like any weight's.
  void gradient(const Call& call, size_t index) {
    const int32_t of = call.in[index];
    if (of == kNoValue) return;
    set(call.din[index], weights_.contains(of) ? DType::f32 : program_.values[static_cast<size_t>(of)].spec.dtype);
  }
  void set(int32_t id, DType dtype) {
    if (id == kNoValue) return;
    Value& value = program_.values[static_cast<size_t>(id)];
    if (value.slot == kNoSlot && value.spec.dtype == DType::f32) value.spec.dtype = dtype;
  }

  Program& program_;
  std::set<int32_t> weights_;
};

// The argument whose gradient is that of the result; none: kNoValue.
int32_t passing_argument(const Call& call) {
  const Arguments declared = arguments_of(call.op);
  for (size_t i = 0; i < call.in.size(); ++i)
    if (passes_gradient(declared, i, [&](size_t k) { return call.in[k] != kNoValue; })) return static_cast<int32_t>(i);
  return kNoValue;
}

// Where d x of y = x + … is d y itself and nobody reads d y later, both become one value.
void share_passed_gradients(Program& program) {
  std::vector<size_t> last(program.values.size(), 0);
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const Call& call = program.calls[i];
    for (const auto* list : {&call.in, &call.out, &call.saved, &call.dout, &call.din})
      for (int32_t id : *list)
        if (id != kNoValue) last[static_cast<size_t>(id)] = i;
  }
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const Call& call = program.calls[i];
    const int32_t passing = call.backward ? passing_argument(call) : kNoValue;
    if (passing == kNoValue) continue;
    const auto argument = static_cast<size_t>(passing);
    const int32_t from = call.dout.front(), to = call.din[argument];
    if (from == kNoValue || to == kNoValue || call.accumulate[argument] || last[static_cast<size_t>(from)] != i) continue;
    const auto planned = [&](int32_t id) { return program.value(id).place == Value::Place::planned; };
    if (!planned(from) || !planned(to) ||
        program.values[static_cast<size_t>(from)].spec != program.values[static_cast<size_t>(to)].spec)
      continue;
    last[static_cast<size_t>(from)] = last[static_cast<size_t>(to)];
    for (size_t k = i; k < program.calls.size(); ++k)
      for (auto* list : {&program.calls[k].dout, &program.calls[k].din, &program.calls[k].in})
        std::replace(list->begin(), list->end(), to, from);
  }
}

// q, k and v of a block lie side by side, and so do their gradients, so that each direction is one product. Layers whose v goes
// through value_mix keep three: that op wants dense rows.
class SideBySide {
 public:
  SideBySide(Program& program, std::map<int32_t, int64_t>& pitches) : program_(program), pitches_(pitches) {
    std::set<int32_t> mixed;
    for (const Call& call : program.calls)
      if (is<ValueMix>(call)) mixed.insert(by_name<ValueMix::InOf>(call.backward ? call.din : call.in).v);
    for (size_t i = 0, count = program.calls.size(); i < count; ++i) {
      const Call& call = program.calls[i];
      if (!is<QkvProject>(call)) continue;
      const std::vector<int32_t>& parts = call.backward ? call.dout : call.out;
      if (!mixed.contains(by_name<QkvProject::OutOf>(parts).v)) join(parts);
    }
  }

  // Plans memory with each block as one value, then gives its parts their places.
  void plan() {
    Program joined = program_;
    for (Call& call : joined.calls)
      for (auto* list : {&call.in, &call.out, &call.saved, &call.dout, &call.din})
        for (int32_t& id : *list)
          if (const auto part = parts_.find(id); part != parts_.end()) id = part->second.block;
    plan_memory(joined);
    program_.arena_bytes = joined.arena_bytes;
    for (size_t id = 0; id < program_.values.size(); ++id) program_.values[id].offset = joined.values[id].offset;
    for (size_t i = 0; i < program_.calls.size(); ++i) program_.calls[i].workspace_offset = joined.calls[i].workspace_offset;
    for (const auto& [id, part] : parts_) {
      const Value& block = program_.values[static_cast<size_t>(part.block)];
      program_.values[static_cast<size_t>(id)].offset =
          block.offset + static_cast<size_t>(part.column) * size_of(block.spec.dtype);
    }
  }

 private:
  struct Part {
    int32_t block;
    int64_t column;
  };
  void join(const std::vector<int32_t>& ids) {
    int64_t width = 0;
    for (int32_t id : ids) {
      if (id == kNoValue || program_.value(id).place != Value::Place::planned || parts_.contains(id)) return;
      width += program_.values[static_cast<size_t>(id)].spec.shape.last();
    }
    const Spec first = program_.values[static_cast<size_t>(ids.front())].spec;
    program_.values.push_back({.name = "qkv", .spec = {{first.shape.rows(), width}, first.dtype}});
    int64_t column = 0;
    for (int32_t id : ids) {
      parts_[id] = {static_cast<int32_t>(program_.values.size() - 1), column};
      pitches_[id] = width;
      column += program_.values[static_cast<size_t>(id)].spec.shape.last();
    }
  }

  Program& program_;
  std::map<int32_t, int64_t>& pitches_;
  std::map<int32_t, Part> parts_;
};

// What the kernels keep in the planned workspace; everything else comes from scratch.
size_t workspace_bytes(const Program& program, const Call& call) {
  const auto bytes = [&](int32_t id) { return program.values[static_cast<size_t>(id)].spec.bytes(); };
  if (is<Mlp>(call) && call.backward) return bytes(by_name<Mlp::SavedOf>(call.saved).post);
  if (const auto* head = std::get_if<SoftcapCrossEntropy>(&call.op); head != nullptr && call.backward && head->logits_wanted)
    return bytes(by_name<SoftcapCrossEntropy::SavedOf>(call.saved).logits);
  if (is<NewtonSchulz>(call))
    return call.workspace_bytes / sizeof(float) *
           size_of(program.values[static_cast<size_t>(by_name<NewtonSchulz::InOf>(call.in).u)].spec.dtype);
  return 0;
}

}  // namespace

Lowered lower(const Program& program, Backend backend) {
  Lowered out{program, {}, {}};
  Program& p = out.program;
  if (backend == Backend::cuda) {
    Typing(p).assign();
    keep_signs(p);
    keep_no_logits(p);
    for (size_t i = 0; i < p.calls.size(); ++i) {
      const Arguments declared = arguments_of(p.calls[i].op);
      for (size_t k = 0; k < p.calls[i].in.size(); ++k) {
        const int32_t id = p.calls[i].in[k];
        if (id == kNoValue || declared.in[k].kind != ArgKind::matrix) continue;
        if (p.value(id).slot != kNoSlot) out.working.insert({i, k});
      }
    }
  }
  share_passed_gradients(p);
  for (Call& call : p.calls) call.workspace_bytes = workspace_bytes(p, call);
  // Kept values live beside the arena, which other programs use too.
  for (int32_t id : p.kept) {
    Value& value = p.value(id);
    if (value.place == Value::Place::planned) value.place = Value::Place::apart;
  }
  p.kept.clear();
  if (backend == Backend::cuda) {
    SideBySide(p, out.pitches).plan();
  } else {
    plan_memory(p);
  }
  return out;
}

}  // namespace fairway::cuda
