// Sizes before any coder has run.
#include <array>
#include <cmath>

#include "quant/quantize_model.h"

namespace fairway {

double entropy_of(std::span<const int8_t> q, bool trellis) {
  // Four tables: equal neighbours would wait for one another's increments.
  std::array<std::array<int64_t, 256>, 4> counts{};
  for (size_t i = 0; i < q.size(); ++i) ++counts[i % 4][static_cast<uint8_t>(q[i])];
  double total[2] = {0, 0}, bits = 0;
  for (size_t symbol = 0; symbol < 256; ++symbol) {
    const auto count = static_cast<double>(counts[0][symbol] + counts[1][symbol] + counts[2][symbol] + counts[3][symbol]);
    if (count > 0) bits -= count * std::log2(count);
    total[trellis ? symbol % 2 : 0] += count;
  }
  for (const double all : total)
    if (all > 0) bits += all * std::log2(all);
  return bits;
}

namespace {

// A step that repeats the row's before costs nothing to speak of.
int64_t new_steps(const HalfScales& steps) {
  int64_t count = 0;
  for (size_t row = 0; row < steps.size(); ++row) count += row == 0 || steps[row] != steps[row - 1] ? 1 : 0;
  return count;
}

// Of integers with this entropy.
double bits_around(const QuantizedTensor& t, double entropy) {
  double bits = entropy + 16.0 * static_cast<double>(new_steps(t.scale)) + 2.0 * static_cast<double>(t.columns.size());
  const LowRankCorrection& c = t.correction;
  if (c.rank > 0)
    bits += 2.0 * static_cast<double>(c.a.size()) + 4.0 * static_cast<double>(c.b.size()) +
            16.0 * static_cast<double>(1 + c.b_scale.size());
  return bits;
}

double float_bits(const QuantizedTensor& t) {
  return (t.coding == TensorCoding::half ? 16.0 : 32.0) * static_cast<double>(t.count());
}

}  // namespace

double estimated_bits(const QuantizedTensor& t) {
  return t.coding == TensorCoding::integer_rows ? bits_around(t, entropy_of(t.q, t.trellis)) : float_bits(t);
}

double estimated_bits(const QuantizedPart& part) {
  const QuantizedTensor& t = part.tensor;
  const auto count = static_cast<double>(t.count());
  return t.coding == TensorCoding::integer_rows ? bits_around(t, part.report.entropy * count) : float_bits(t);
}

double estimated_bits(const QuantizedModel& model) {
  double bits = 0;
  for (const QuantizedTensor& tensor : model.tensors) bits += estimated_bits(tensor);
  return bits;
}

}  // namespace fairway
