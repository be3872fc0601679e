// A recorded program: op calls in order over values whose memory is planned once. Replaying it allocates nothing, takes no
// decision on data and uses fixed addresses, so that a device can capture it as a graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/all_ops.h"

namespace fairway {

inline constexpr int32_t kNoValue = -1;  // an absent optional argument

struct Value {
  std::string name;
  Spec spec;
  Tensor external;    // present: memory of somebody else (a parameter, a gradient, an input)
  size_t offset = 0;  // otherwise: place in the program's arena
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
  std::vector<Value> values;
  std::vector<Call> calls;
  std::vector<ObservePoint> observed;  // in the order they are made
  std::vector<int32_t> kept;           // values that stay readable after the program has run
  size_t arena_bytes = 0;
};

std::string_view op_name(const AnyOp&);
double forward_flops(const Program&);

}  // namespace fairway
