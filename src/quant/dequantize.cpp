#include <fmt/format.h>

#include "base/error.h"
#include "base/half.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

void add_correction(const QuantizedTensor& t, int64_t row, double* sums) {
  const LowRankCorrection& c = t.correction;
  const double a_scale = from_half(c.a_scale);
  for (int64_t r = 0; r < c.rank; ++r) {
    const double a = a_scale * static_cast<double>(c.a[static_cast<size_t>(row * c.rank + r)]);
    if (a == 0) continue;
    for (int64_t j = 0; j < t.cols; ++j) {
      const auto at = static_cast<size_t>(r * t.cols + j);
      sums[j] +=
          a * (static_cast<double>(from_half(c.b_scale[at / static_cast<size_t>(c.group)])) * static_cast<double>(c.b[at]));
    }
  }
}

void check_sizes(const QuantizedTensor& t) {
  const auto count = static_cast<size_t>(t.count());
  bool whole = t.coding == TensorCoding::half ? t.halves.size() == count : t.singles.size() == count;
  if (t.coding == TensorCoding::integer_rows)
    whole = t.q.size() == count && t.scale.size() == static_cast<size_t>(t.rows) &&
            (t.columns.empty() || t.columns.size() == static_cast<size_t>(t.cols));
  const LowRankCorrection& c = t.correction;
  if (c.rank > 0)
    whole = whole && c.a.size() == static_cast<size_t>(t.rows * c.rank) && c.b.size() == static_cast<size_t>(t.cols * c.rank) &&
            c.b_scale.size() == static_cast<size_t>(c.groups(t.cols));
  if (!whole)
    throw InputError(fmt::format("{}: its arrays do not have the {} x {} elements it says", name_of(t.bank), t.rows, t.cols));
}

}  // namespace

void dequantize(const QuantizedTensor& t, std::span<float> out) {
  check_sizes(t);
  FAIRWAY_ASSERT(static_cast<int64_t>(out.size()) == t.count(), "the output has the tensor's size");
  if (t.coding == TensorCoding::half)
    for (size_t i = 0; i < out.size(); ++i) out[i] = from_half(t.halves[i]);
  else if (t.coding == TensorCoding::single)
    for (size_t i = 0; i < out.size(); ++i) out[i] = t.singles[i];
  if (t.coding != TensorCoding::integer_rows) return;
  std::vector<double> sums(static_cast<size_t>(t.cols));
  const std::vector<float> factors = step_factors(t.columns);
  for (int64_t row = 0; row < t.rows; ++row) {
    const float step = from_half(t.scale[static_cast<size_t>(row)]);
    const size_t at = static_cast<size_t>(row * t.cols);
    for (size_t j = 0; j < sums.size(); ++j) sums[j] = static_cast<double>(step * static_cast<float>(t.q[at + j]));  // exact
    for (size_t j = 0; j < factors.size(); ++j) sums[j] *= static_cast<double>(factors[j]);  // exact too: 18 and 24 bits
    if (t.correction.rank > 0) add_correction(t, row, sums.data());
    for (size_t j = 0; j < sums.size(); ++j) out[at + j] = static_cast<float>(sums[j]);
  }
}

void dequantize(const QuantizedModel& model, ParamStore& out, ThreadPool* pool) {
  std::map<ParamId, int64_t> filled;
  for (const QuantizedTensor& t : model.tensors) {
    if (!out.has(t.bank)) throw InputError(fmt::format("{}: the model has no such parameter", name_of(t.bank)));
    const ParamBank& bank = out.bank(t.bank);
    const int64_t slices = t.slice < 0 ? 1 : bank.value.dim(0);
    if (t.slice >= slices || t.cols != bank.value.cols() || t.rows * slices != bank.value.rows())
      throw InputError(fmt::format("{}: slice {} of {} x {} does not fit {}", name_of(t.bank), t.slice, t.rows, t.cols,
                                   bank.value.spec.shape.text()));
    filled[t.bank] += t.count();
  }
  for (const ParamBank& bank : out.banks()) {
    const auto at = filled.find(bank.info.row().id);
    if (at == filled.end() || at->second != bank.value.numel())
      throw InputError(fmt::format("{}: {} of {} weights are given", bank.info.name, at == filled.end() ? 0 : at->second,
                                   bank.value.numel()));
  }
  for_each_index(pool, model.tensors.size(), [&](size_t i) {
    const QuantizedTensor& t = model.tensors[i];
    float* to = out.bank(t.bank).value.as<float>() + std::max<int64_t>(t.slice, 0) * t.count();
    dequantize(t, {to, static_cast<size_t>(t.count())});
  });
}

}  // namespace fairway
