#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "artifact/stored_parts.h"
#include "base/error.h"
#include "base/trellis.h"

namespace fairway {
namespace {

bool finite_half(uint16_t half) { return (half & 0x7C00) != 0x7C00; }
bool finite_scale(uint16_t half) { return finite_half(half) && (half & 0x8000) == 0; }

[[noreturn]] void refuse(const std::string& where, const QuantizedTensor& tensor, const std::string& what) {
  throw InputError(where + tensor_name(tensor.bank, tensor.slice) + ": " + what);
}

}  // namespace

void check_weights(const QuantizedTensor& t, const std::string& where) {
  const int most = t.coding == TensorCoding::integer_rows ? largest_level(t.bits) : 0;
  const int level = t.trellis ? std::min(most, kTrellisLevel) : most;
  int beyond = 0;  // without a branch, for the compiler's vectors
  for (const int8_t q : t.q) beyond |= q > level || q < -level ? 1 : 0;
  if (beyond != 0) {
    const auto bad = std::find_if(t.q.begin(), t.q.end(), [&](int8_t q) { return q > level || q < -level; });
    refuse(where, t, fmt::format("weight {} is {}, the grid of {} bits ends at {}", bad - t.q.begin(), *bad, t.bits, level));
  }
  if (!t.trellis) return;
  const auto cols = static_cast<size_t>(t.cols);
  std::vector<uint8_t> states(cols);
  for (int64_t row = 0; row < t.rows; ++row) {
    if (row % kTrellisRows == 0) std::fill(states.begin(), states.end(), uint8_t{0});
    const int8_t* q = t.q.data() + static_cast<size_t>(row) * cols;
    int astray = 0;
    for (size_t j = 0; j < cols; ++j) {
      astray |= (q[j] ^ states[j]) & 1;
      states[j] = static_cast<uint8_t>(next_trellis_state(states[j], q[j]));
    }
    if (astray != 0) refuse(where, t, fmt::format("row {} leaves the trellis", row));
  }
}

void check_values(const QuantizedTensor& t, const std::string& where) {
  if (!std::all_of(t.scale.begin(), t.scale.end(), finite_scale)) refuse(where, t, "a row scale is negative or not finite");
  const auto beyond = [](int8_t v) { return std::abs(v) > kMostColumnClass; };
  if (const auto bad = std::find_if(t.columns.begin(), t.columns.end(), beyond); bad != t.columns.end())
    refuse(where, t,
           fmt::format("the step of column {} is of class {}, expected {} to {}", bad - t.columns.begin(), *bad,
                       -kMostColumnClass, kMostColumnClass));
  if (!std::all_of(t.halves.begin(), t.halves.end(), finite_half)) refuse(where, t, "a half is not finite");
  if (!std::all_of(t.singles.begin(), t.singles.end(), [](float v) { return std::isfinite(v); }))
    refuse(where, t, "a single is not finite");
  const LowRankCorrection& c = t.correction;
  if (!std::all_of(c.a.begin(), c.a.end(), [](int8_t v) { return v >= -2 && v <= 1; }))
    refuse(where, t, "a correction factor A lies outside -2 to 1");
  if (!std::all_of(c.b.begin(), c.b.end(), [](int8_t v) { return v >= -8 && v <= 7; }))
    refuse(where, t, "a correction factor B lies outside -8 to 7");
  if (!finite_scale(c.a_scale) || !std::all_of(c.b_scale.begin(), c.b_scale.end(), finite_scale))
    refuse(where, t, "a correction scale is negative or not finite");
}

}  // namespace fairway
