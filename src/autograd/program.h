// A recorded program: op calls in order over values. It is structure alone: what memory its slots stand for is told by the
// Bindings it is opened with (autograd/executor.h), and the rest is planned once. Replaying it allocates nothing, takes no
// decision on data and uses fixed addresses, so that a device can capture it as a graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/all_ops.h"

namespace fairway {

inline constexpr int32_t kNoValue = -1;  // an absent optional argument
inline constexpr int32_t kNoSlot = -1;

// A parameter as programs name it: a bank of a store and a slice of its first axis.
struct ParamSlot {
  int32_t bank = -1;
  int64_t slice = -1;  // -1: the whole bank
  bool operator==(const ParamSlot&) const = default;
  auto operator<=>(const ParamSlot&) const = default;
};

// Memory that a program reads and writes but does not plan.
struct Slot {
  enum class Kind : uint8_t { input, parameter, gradient };
  Kind kind = Kind::input;
  ParamSlot param{};  // of parameters and gradients
};

struct Value {
  enum class Place : uint8_t {
    planned,  // in memory that other values use too, from the call that makes it to the last that reads it
    bound,    // memory of a slot
    apart     // memory of the session alone, zeroed when it is opened and kept from run to run
  };
  std::string name;
  Spec spec;
  Place place = Place::planned;
  int32_t slot = kNoSlot;  // where it is bound
  size_t offset = 0;       // where it is planned
};

struct Call {
  AnyOp op;
  bool backward = false;
  std::string label;                               // where in the model, e.g. "block3.attention"
  std::vector<int32_t> in, out, saved, dout, din;  // value ids, kNoValue where absent
  std::vector<bool> accumulate;                    // for each din
  size_t workspace_bytes = 0;
  size_t workspace_offset = 0;
  double flops = 0;
};

struct ObservePoint {
  std::string name;
  int32_t value = kNoValue;
  size_t call = 0;  // told after this call: the last one recorded before observe()
};

struct Program {
  std::vector<Slot> slots;
  std::vector<Value> values;
  std::vector<Call> calls;
  std::vector<ObservePoint> observed;  // in the order they are made
  std::vector<int32_t> kept;           // values that stay readable after the program has run
  size_t arena_bytes = 0;
  // The bits of a row must not depend on how many rows the program has: no kernel is chosen by their number.
  bool rows_alike = false;

  const Value& value(int32_t id) const { return values[static_cast<size_t>(id)]; }
  Value& value(int32_t id) { return values[static_cast<size_t>(id)]; }
  // The slot that a value stands for; null where it is none.
  const Slot* slot_of(int32_t id) const {
    return id == kNoValue || value(id).slot == kNoSlot ? nullptr : &slots[static_cast<size_t>(value(id).slot)];
  }
};

// Memory for a program's slots.
class Bindings {
 public:
  void bind(int32_t slot, const Tensor& memory) {
    if (static_cast<size_t>(slot) >= memory_.size()) memory_.resize(static_cast<size_t>(slot) + 1);
    memory_[static_cast<size_t>(slot)] = memory;
  }
  const Tensor& at(int32_t slot) const { return memory_.at(static_cast<size_t>(slot)); }

 private:
  std::vector<Tensor> memory_;
};

// A program and the memory it was recorded for.
struct Recording {
  Program program;
  Bindings bindings;
};

std::string_view op_name(const AnyOp&);
double forward_flops(const Program&);

}  // namespace fairway
