#include "generate/packed_weights.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/half.h"
#include "quant/quantize_model.h"
#include "quant/step_factors.h"

namespace fairway {
namespace {

bool packs(const QuantizedTensor& t) {
  const ParamRow& row = row_of(t.bank);  // the model reads a bank matrix by matrix
  const bool product = row.kind.input != InputPoint::none && (row.block != BlockPart::matrices || t.slice >= 0);
  return product && t.coding == TensorCoding::integer_rows && t.cols <= cpu::kMostPackedCols;
}

int64_t scales_of(const QuantizedTensor& t) { return (t.rows + cpu::kTileRows - 1) / cpu::kTileRows * cpu::kTileRows; }

size_t packed_size(const QuantizedModel& model) {
  size_t bytes = 0;
  for (const QuantizedTensor& t : model.tensors) {
    if (!packs(t)) continue;
    bytes += align_up(cpu::packed_bytes(cpu::packed_form(t.bits), t.rows, t.cols));
    bytes += align_up(static_cast<size_t>(scales_of(t)) * sizeof(float));
  }
  return bytes;
}

// Banks of which every matrix is packed.
std::set<ParamId> packed_banks(const QuantizedModel& model) {
  std::set<ParamId> banks;
  for (const QuantizedTensor& t : model.tensors)
    if (packs(t)) banks.insert(t.bank);
  for (const QuantizedTensor& t : model.tensors)
    if (!packs(t)) banks.erase(t.bank);
  return banks;
}

float* floats_of(const ParamStore& params, const QuantizedTensor& t) {
  const ParamBank& bank = params.bank(t.bank);
  const int64_t first = std::max<int64_t>(t.slice, 0) * t.count();
  FAIRWAY_ASSERT(first + t.count() <= bank.value.numel() && bank.value.cols() == t.cols, "a tensor of its parameter's shape");
  return bank.value.as<float>() + first;
}

std::vector<float> factor_a(const LowRankCorrection& c) {
  std::vector<float> out;
  for (const int8_t value : c.a) out.push_back(from_half(c.a_scale) * static_cast<float>(value));
  return out;
}
std::vector<float> factor_b(const LowRankCorrection& c) {
  std::vector<float> out;
  const auto group = static_cast<size_t>(c.group);
  for (size_t i = 0; i < c.b.size(); ++i) out.push_back(from_half(c.b_scale[i / group]) * static_cast<float>(c.b[i]));
  return out;
}

}  // namespace

PackedWeights::PackedWeights(const QuantizedModel& model)
    : params_(parameter_table(model.model), ParamStore::Gradients::none, DType::f32, packed_banks(model)),
      packed_("packed weights", packed_size(model)) {
  for (const QuantizedTensor& t : model.tensors) {
    if (!packs(t)) continue;
    PackedMatrix& matrix = matrices_[slot_of(t)];
    const auto bytes = static_cast<int64_t>(cpu::packed_bytes(cpu::packed_form(t.bits), t.rows, t.cols));
    matrix.rows = {.rows = t.rows, .cols = t.cols};
    matrix.rows.data = packed_.make(name_of(t.bank), {{bytes}, DType::u8}).as<uint8_t>();
    matrix.rows.scale = packed_.make("scales", {{scales_of(t)}, DType::f32}).as<float>();
    most_cols_ = std::max(most_cols_, t.cols);
  }
}

PackedWeights::PackedWeights(const QuantizedModel& model, ThreadPool& pool) : PackedWeights(model) {
  pool.parallel_for(static_cast<int64_t>(model.tensors.size()),
                    [&](int64_t i) { lay_out(model.tensors[static_cast<size_t>(i)]); });
  finish(model, pool);
}

void PackedWeights::lay_out(const QuantizedTensor& t) {
  const auto at = matrices_.find(slot_of(t));
  if (at == matrices_.end()) return;
  cpu::PackedRows& rows = at->second.rows;
  const float* scale = rows.scale;
  rows = cpu::pack_matrix(t.q.data(), t.rows, t.cols, t.bits, const_cast<uint8_t*>(rows.data));
  rows.scale = scale;
}

size_t PackedWeights::bytes() const {
  size_t bytes = 0;
  for (const auto& [place, matrix] : matrices_)
    bytes += cpu::bytes_read(matrix.rows) + static_cast<size_t>(matrix.rows.rows) * sizeof(float);
  return bytes;
}

void PackedWeights::take(QuantizedTensor& t) {
  if (!packs(t)) return;
  lay_out(t);
  t.q = {};
}

void PackedWeights::finish(const QuantizedModel& model, ThreadPool& pool) {
  std::vector<const QuantizedTensor*> floats;
  for (const QuantizedTensor& t : model.tensors) {
    const auto at = matrices_.find(slot_of(t));
    if (at == matrices_.end()) {
      floats.push_back(&t);
      continue;
    }
    PackedMatrix& matrix = at->second;
    std::transform(t.scale.begin(), t.scale.end(), const_cast<float*>(matrix.rows.scale), from_half);
    if (!t.columns.empty()) matrix.columns = columns_.try_emplace(t.columns, step_factors(t.columns)).first->second.data();
    if (t.correction.rank == 0) continue;
    matrix.rank = t.correction.rank;
    matrix.a = corrections_.emplace_back(factor_a(t.correction)).data();
    matrix.b = corrections_.emplace_back(factor_b(t.correction)).data();
  }
  pool.parallel_for(static_cast<int64_t>(floats.size()), [&](int64_t i) {
    const QuantizedTensor& t = *floats[static_cast<size_t>(i)];
    dequantize(t, {floats_of(params_, t), static_cast<size_t>(t.count())});
  });
}

ParamSlot PackedWeights::slot_of(const QuantizedTensor& t) const { return {params_.bank(t.bank).number, t.slice}; }

const PackedMatrix* PackedWeights::find(const ParamSlot& weight) const {
  const auto at = matrices_.find(weight);
  return at == matrices_.end() ? nullptr : &at->second;
}

}  // namespace fairway
