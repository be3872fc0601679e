// Which values of the tensors make up each data section, told once for the writer, the reader and the ledger.
#pragma once

#include <array>
#include <type_traits>
#include <vector>

#include "artifact/tensor_table.h"
#include "artifact/weight_coder.h"

namespace fairway {

// By role; to encode from or to decode into, as the tensors are constant or not.
template <class Weight>
using WeightStreams = std::array<std::vector<WeightMatrix<Weight>>, kStreamRoles>;
template <class Tensors>
auto weight_streams(Tensors& tensors, int64_t layers) {
  WeightStreams<std::remove_pointer_t<decltype(tensors.front().q.data())>> streams;
  for (auto& t : tensors) {
    if (t.coding != TensorCoding::integer_rows) continue;
    streams[static_cast<size_t>(stream_role(t, layers))].push_back(
        {t.q.data(), t.rows, t.cols, largest_level(t.bits), t.trellis});
  }
  return streams;
}

struct ValuePart {
  const char* name;
  size_t width;                             // bytes of a value
  size_t (*bytes)(const QuantizedTensor&);  // of one tensor's share
  const char* (*data)(const QuantizedTensor&);
  char* (*place)(QuantizedTensor&);  // the same, to read into
};
template <class Values>
constexpr ValuePart value_part(const char* name, size_t width, size_t (*bytes)(const QuantizedTensor&), Values) {
  return {name, width, bytes, [](const QuantizedTensor& t) { return reinterpret_cast<const char*>(Values{}(t)); },
          [](QuantizedTensor& t) { return reinterpret_cast<char*>(Values{}(t)); }};
}

// In file order.
inline constexpr ValuePart kValueParts[] = {
    value_part(
        "row scales", 2,
        [](const QuantizedTensor& t) { return t.coding == TensorCoding::integer_rows ? 2 * static_cast<size_t>(t.rows) : 0; },
        [](auto& t) { return t.scale.data(); }),
    value_part(
        "column steps", 1, [](const QuantizedTensor& t) { return t.columns.size(); }, [](auto& t) { return t.columns.data(); }),
    value_part(
        "halves", 2,
        [](const QuantizedTensor& t) { return t.coding == TensorCoding::half ? 2 * static_cast<size_t>(t.count()) : 0; },
        [](auto& t) { return t.halves.data(); }),
    value_part(
        "singles", 4,
        [](const QuantizedTensor& t) { return t.coding == TensorCoding::single ? 4 * static_cast<size_t>(t.count()) : 0; },
        [](auto& t) { return t.singles.data(); }),
    value_part(
        "correction factors A", 1, [](const QuantizedTensor& t) { return static_cast<size_t>(t.correction.rank * t.rows); },
        [](auto& t) { return t.correction.a.data(); }),
    value_part(
        "correction factors B", 1, [](const QuantizedTensor& t) { return static_cast<size_t>(t.correction.rank * t.cols); },
        [](auto& t) { return t.correction.b.data(); }),
    value_part(
        "correction scales A", 2, [](const QuantizedTensor& t) { return static_cast<size_t>(t.correction.rank > 0 ? 2 : 0); },
        [](auto& t) { return &t.correction.a_scale; }),
    value_part(
        "correction scales B", 2, [](const QuantizedTensor& t) { return 2 * static_cast<size_t>(t.correction.groups(t.cols)); },
        [](auto& t) { return t.correction.b_scale.data(); }),
};

// All but the integers.
inline void allocate_few(QuantizedTensor& t) {
  const auto count = static_cast<size_t>(t.count());
  if (t.coding == TensorCoding::integer_rows) t.scale.resize(static_cast<size_t>(t.rows));
  if (t.coding == TensorCoding::half) t.halves.resize(count);
  if (t.coding == TensorCoding::single) t.singles.resize(count);
  if (t.correction.rank == 0) return;
  t.correction.a.resize(static_cast<size_t>(t.correction.rank * t.rows));
  t.correction.b.resize(static_cast<size_t>(t.correction.rank * t.cols));
  t.correction.b_scale.resize(static_cast<size_t>(t.correction.groups(t.cols)));
}

inline void allocate_values(QuantizedTensor& t) {
  allocate_few(t);
  if (t.coding == TensorCoding::integer_rows) t.q.resize(static_cast<size_t>(t.count()));
}

// InputError, beginning with `where`, when a value lies off its grid or is not finite.
void check_weights(const QuantizedTensor& tensor, const std::string& where);  // the integers
void check_values(const QuantizedTensor& tensor, const std::string& where);   // the rest

}  // namespace fairway
