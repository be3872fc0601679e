#include "autograd/passes.h"

#include <set>

#include "autograd/tape.h"

namespace fairway {

void rebind_gradients(Recording& recording, const std::function<Tensor(const ParamSlot&)>& place) {
  for (const Value& value : recording.program.values) {
    if (value.slot == kNoSlot) continue;
    const Slot& slot = recording.program.slots[static_cast<size_t>(value.slot)];
    if (slot.kind == Slot::Kind::gradient) recording.bindings.bind(value.slot, place(slot.param).reshaped(value.spec.shape));
  }
}

void drop_gradients(Program& program, const std::function<bool(const ParamSlot&)>& frozen) {
  for (Call& call : program.calls) {
    for (size_t i = 0; i < call.din.size(); ++i) {
      const Slot* slot = program.slot_of(call.din[i]);
      if (slot == nullptr || slot->kind != Slot::Kind::gradient || !frozen(slot->param)) continue;
      call.din[i] = kNoValue;
      call.accumulate[i] = false;
    }
  }
}

void overwrite_gradients(Program& program) {
  std::set<int32_t> written;
  for (Call& call : program.calls)
    for (size_t i = 0; i < call.din.size(); ++i) {
      const Slot* slot = program.slot_of(call.din[i]);
      if (slot != nullptr && slot->kind == Slot::Kind::gradient && written.insert(call.din[i]).second)
        call.accumulate[i] = false;
    }
}

std::map<std::string, int32_t> sum_products(Program& program, const std::function<bool(const std::string&)>& wanted) {
  std::map<std::string, int32_t> sums;
  for (const ObservePoint& point : program.observed) {
    if (!wanted(point.name) || sums.contains(point.name)) continue;
    const int64_t side = program.value(point.value).spec.shape.last();
    sums[point.name] = static_cast<int32_t>(program.values.size());
    program.values.push_back({.name = point.name, .spec = {{side, side}, DType::f64}, .place = Value::Place::apart});
  }
  std::vector<Call> calls;
  auto point = program.observed.begin();
  for (size_t i = 0; i < program.calls.size(); ++i) {
    calls.push_back(std::move(program.calls[i]));
    for (; point != program.observed.end() && point->call == i; ++point)
      if (const auto sum = sums.find(point->name); sum != sums.end())
        calls.push_back({.op = HessianAccumulate{}, .label = point->name, .in = {sum->second, point->value}});
  }
  program.calls = std::move(calls);
  program.observed.clear();
  plan_memory(program);
  return sums;
}

}  // namespace fairway
