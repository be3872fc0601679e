#include "quant/tensor_plan.h"

#include "base/error.h"
#include "quant/hessians.h"
#include "quant/quantized_model.h"

namespace fairway {
namespace {

bool integers(QuantRole role, int64_t count, const QuantRecipe& quant) {
  if (role <= QuantRole::token) return true;
  if (role == QuantRole::table) return count > quant.half_elements;
  return role == QuantRole::gate && quant.gate_bits > 0;
}

}  // namespace

std::vector<TensorPlan> tensor_plans(const ParamStore& weights, const Recipe& recipe) {
  std::vector<TensorPlan> plans;
  for (const ParamBank& bank : weights.banks()) {
    const ParamRow& row = bank.info.row();
    const bool sliced = row.block == BlockPart::matrices;
    const int64_t slices = sliced ? bank.value.dim(0) : 1;
    const int64_t cols = bank.value.cols(), rows = bank.value.rows() / slices;
    for (int64_t slice = 0; slice < slices; ++slice) {
      TensorPlan plan{.bank = row.id, .slice = sliced ? slice : -1};
      plan.role = row.kind_of(slice, recipe.model.layers).quant;
      plan.weight = {bank.value.as<float>() + slice * rows * cols, rows, cols};
      plan.integers = integers(plan.role, plan.weight.count(), recipe.quant);
      plan.point = hessian_point(recipe.model, plan.bank, slice);
      require_finite(plan.weight, plan.name());
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

GridSetting grid_setting(const TensorPlan& plan, const QuantRecipe& quant) {
  const auto bits = [](int64_t value) { return static_cast<int>(value); };
  if (plan.attention()) return {bits(quant.attn_bits > 0 ? quant.attn_bits : quant.matrix_bits), quant.clip.attn};
  if (plan.matrix()) return {bits(quant.matrix_bits), quant.clip.mlp};
  if (plan.role == QuantRole::token) return {bits(quant.token_bits), quant.clip.token};
  if (plan.role == QuantRole::gate) return {bits(quant.gate_bits), 0};
  return {bits(quant.table_bits), quant.clip.table};
}

GridSetting shared_step_setting(double largest, double step, bool trellis) {
  constexpr double kHeadroom = 1.25;
  int bits = trellis ? 3 : 2;
  if (trellis) step /= 2;
  while (bits < 8 && largest_level(bits) < kHeadroom * largest / step + 1) ++bits;
  return {.bits = bits, .step = step, .trellis = trellis};
}

double sensitivity(QuantRole role, const SensitivityRecipe& weights) {
  switch (role) {
    case QuantRole::q: return weights.q;
    case QuantRole::k: return weights.k;
    case QuantRole::v: return weights.v;
    case QuantRole::o: return weights.o;
    case QuantRole::up: return weights.up;
    case QuantRole::down: return weights.down;
    case QuantRole::token: return weights.token;
    case QuantRole::table:
    case QuantRole::gate:
    case QuantRole::rest: break;
  }
  return weights.table;
}

}  // namespace fairway
