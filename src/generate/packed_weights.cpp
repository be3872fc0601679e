#include "generate/packed_weights.h"

#include <algorithm>

#include "base/error.h"
#include "base/half.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

bool packs(const QuantizedTensor& t) {
  const bool product = t.bank.starts_with("bank.") || t.bank == "embed.token";
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
  for (size_t i = 0; i < c.b.size(); ++i) out.push_back(from_half(c.b_scale[i / kLowRankGroup]) * static_cast<float>(c.b[i]));
  return out;
}

struct Task {
  const QuantizedTensor* from;
  float* floats;
  cpu::PackedRows rows;  // empty: the tensor is wanted in floats
  uint8_t* data = nullptr;
};

void convert(const Task& task) {
  const QuantizedTensor& t = *task.from;
  if (task.data == nullptr) return dequantize(t, {task.floats, static_cast<size_t>(t.count())});
  cpu::pack_rows(task.rows, t.q.data(), {0, task.rows.row_tiles()}, task.data);
}

}  // namespace

PackedWeights::PackedWeights(const QuantizedModel& model, ThreadPool& pool)
    : params_(parameter_table(model.model), ParamStore::Gradients::none), packed_("packed weights", packed_size(model)) {
  std::vector<Task> tasks;
  for (const QuantizedTensor& t : model.tensors) {
    Task& task = tasks.emplace_back(Task{&t, floats_of(params_, t), {}});
    if (!packs(t)) continue;
    task.rows = {.form = cpu::packed_form(t.bits), .rows = t.rows, .cols = t.cols};
    const auto bytes = static_cast<int64_t>(cpu::packed_bytes(task.rows.form, t.rows, t.cols));
    task.data = packed_.make(t.bank, {{bytes}, DType::u8}).as<uint8_t>();
    auto* scale = packed_.make("scales", {{scales_of(t)}, DType::f32}).as<float>();
    std::transform(t.scale.begin(), t.scale.end(), scale, [](uint16_t half) { return from_half(half); });
    most_cols_ = std::max(most_cols_, t.cols);
    task.rows.data = task.data, task.rows.scale = scale;
    PackedMatrix& matrix = matrices_[reinterpret_cast<const std::byte*>(task.floats)];
    matrix.rows = task.rows;
    if (t.correction.rank == 0) continue;
    matrix.rank = t.correction.rank;
    matrix.a = corrections_.emplace_back(factor_a(t.correction)).data();
    matrix.b = corrections_.emplace_back(factor_b(t.correction)).data();
  }
  pool.parallel_for(static_cast<int64_t>(tasks.size()), [&](int64_t i) { convert(tasks[static_cast<size_t>(i)]); });
}

const PackedMatrix* PackedWeights::find(const Tensor& weight) const {
  const auto at = matrices_.find(weight.data);
  return at == matrices_.end() ? nullptr : &at->second;
}

}  // namespace fairway
