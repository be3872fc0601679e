#include "audit/broken_mask.h"

#include "autograd/tape.h"

namespace fairway {
namespace {

// Another value of the same kind.
int32_t add_like(Program& program, int32_t value) {
  const Spec spec = program.value(value).spec;
  program.values.push_back({.name = program.value(value).name + " of the next row", .spec = spec});
  return static_cast<int32_t>(program.values.size()) - 1;
}

}  // namespace

std::unique_ptr<Session> BrokenMaskExecutor::open(Recording recording, Arena*) {
  Program& program = recording.program;
  std::vector<Call> calls;
  std::vector<Tensor> indices;
  for (Call& call : program.calls) {
    if (const auto* op = std::get_if<Attention>(&call.op); op != nullptr && !call.backward) {
      const int64_t rows = program.value(call.in[1]).spec.shape.rows();
      const Spec spec{{rows}, DType::i32};
      next_rows_.push_back(std::make_unique<Arena>("rows of a broken mask", align_up(spec.bytes())));
      const Tensor next = indices.emplace_back(next_rows_.back()->make("next row", spec));
      for (int64_t m = 0; m < rows; ++m)
        next.as<int32_t>()[m] = static_cast<int32_t>((m + 1) % op->row_length == 0 ? m : m + 1);
      program.slots.push_back({});
      const auto slot = static_cast<int32_t>(program.slots.size()) - 1, index = static_cast<int32_t>(program.values.size());
      program.values.push_back({.name = "next row", .spec = spec, .place = Value::Place::bound, .slot = slot});
      recording.bindings.bind(slot, next);
      for (int32_t& shifted : {std::ref(call.in[1]), std::ref(call.in[2])}) {  // key and value
        const int32_t honest = shifted;
        shifted = add_like(program, honest);
        calls.push_back({.op = PickRows{}, .label = call.label, .in = {index, honest}, .out = {shifted}});
      }
    }
    calls.push_back(std::move(call));
  }
  program.calls = std::move(calls);
  plan_memory(program);
  std::unique_ptr<Session> session = honest_->open(std::move(recording));
  for (const Tensor& next : indices) honest_->upload(next);
  return session;
}

}  // namespace fairway
