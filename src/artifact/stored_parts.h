// Which values of the tensors make up each data section, told once for the writer, the reader and the ledger.
#pragma once

#include <array>
#include <vector>

#include "artifact/tensor_table.h"
#include "artifact/weight_coder.h"

namespace fairway {

using WeightStreams = std::array<std::vector<WeightBlock>, kStreamRoles>;
inline WeightStreams weight_streams(std::vector<QuantizedTensor>& tensors, int64_t layers) {
  WeightStreams streams;
  for (QuantizedTensor& t : tensors) {
    if (t.coding != TensorCoding::integer_rows) continue;
    streams[static_cast<size_t>(stream_role(t, layers))].push_back({t.q.data(), t.rows, t.cols, largest_level(t.bits)});
  }
  return streams;
}

struct ValuePart {
  const char* name;
  size_t width;                             // bytes of a value
  size_t (*bytes)(const QuantizedTensor&);  // of one tensor's share
  char* (*data)(QuantizedTensor&);
};

inline int64_t scale_groups(const QuantizedTensor& t) {
  return (t.correction.rank * t.cols + kLowRankGroup - 1) / kLowRankGroup;
}

// In file order.
inline constexpr ValuePart kValueParts[] = {
    {"row scales", 2,
     [](const QuantizedTensor& t) { return t.coding == TensorCoding::integer_rows ? 2 * static_cast<size_t>(t.rows) : 0; },
     [](QuantizedTensor& t) { return reinterpret_cast<char*>(t.scale.data()); }},
    {"halves", 2,
     [](const QuantizedTensor& t) { return t.coding == TensorCoding::half ? 2 * static_cast<size_t>(t.count()) : 0; },
     [](QuantizedTensor& t) { return reinterpret_cast<char*>(t.halves.data()); }},
    {"singles", 4,
     [](const QuantizedTensor& t) { return t.coding == TensorCoding::single ? 4 * static_cast<size_t>(t.count()) : 0; },
     [](QuantizedTensor& t) { return reinterpret_cast<char*>(t.singles.data()); }},
    {"correction factors A", 1, [](const QuantizedTensor& t) { return static_cast<size_t>(t.correction.rank * t.rows); },
     [](QuantizedTensor& t) { return reinterpret_cast<char*>(t.correction.a.data()); }},
    {"correction factors B", 1, [](const QuantizedTensor& t) { return static_cast<size_t>(t.correction.rank * t.cols); },
     [](QuantizedTensor& t) { return reinterpret_cast<char*>(t.correction.b.data()); }},
    {"correction scales A", 2, [](const QuantizedTensor& t) { return static_cast<size_t>(t.correction.rank > 0 ? 2 : 0); },
     [](QuantizedTensor& t) { return reinterpret_cast<char*>(&t.correction.a_scale); }},
    {"correction scales B", 2, [](const QuantizedTensor& t) { return 2 * static_cast<size_t>(scale_groups(t)); },
     [](QuantizedTensor& t) { return reinterpret_cast<char*>(t.correction.b_scale.data()); }},
};

inline void allocate_values(QuantizedTensor& t) {
  const auto count = static_cast<size_t>(t.count());
  if (t.coding == TensorCoding::integer_rows) t.q.resize(count), t.scale.resize(static_cast<size_t>(t.rows));
  if (t.coding == TensorCoding::half) t.halves.resize(count);
  if (t.coding == TensorCoding::single) t.singles.resize(count);
  if (t.correction.rank == 0) return;
  t.correction.a.resize(static_cast<size_t>(t.correction.rank * t.rows));
  t.correction.b.resize(static_cast<size_t>(t.correction.rank * t.cols));
  t.correction.b_scale.resize(static_cast<size_t>(scale_groups(t)));
}

// InputError, beginning with `where`, when a value lies off its grid or is not finite.
void check_values(const QuantizedTensor& tensor, const std::string& where);

}  // namespace fairway
