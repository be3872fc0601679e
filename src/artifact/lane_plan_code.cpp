#include "artifact/lane_plan_code.h"

#include "base/error.h"

namespace fairway {

PlanCode::PlanCode(FineModel::Use use) : use_(use) {
  const std::array<uint32_t, kLaneClasses> prior = [] {
    std::array<uint32_t, kLaneClasses> flat;
    flat.fill(FineModel::kObservation / 8);
    return flat;
  }();
  columns_.begin(prior);
}

FineModel::Alphabet PlanCode::column_alphabet(const LanePlan& plan) const {
  return {0, std::max(1, (plan.shape.highest - plan.shape.lowest) / (plan.coarse ? 2 : 1))};  // models need two symbols
}

void PlanCode::note(int symbol, FineModel::Alphabet alphabet) {
  columns_.note(symbol);
  if (columns_.due()) columns_.refresh(alphabet, use_);
}

void PlanCode::put(FineEncoder& rans, const LanePlan& plan, int level) {
  const auto bits = [&](int value, int count) { rans.put_bits(static_cast<uint32_t>(value), count); };
  const bool same = any_ && same_but_columns(plan, before_);
  if (any_) bits(same ? 0 : 1, 1);
  if (!same) {
    bits(plan.shape.largest, level_bits(level));
    if (plan.shape.largest > 0) put_shape(rans, plan);
  }
  before_ = plan, any_ = true;
  if (plan.shape.largest == 0 || !plan.classed) return;
  bits(plan.columns.empty() ? 0 : 1, 1);
  if (plan.columns.empty()) return;
  bits(plan.coarse ? 1 : 0, 1);
  const FineModel::Alphabet alphabet = column_alphabet(plan);
  columns_.refresh(alphabet, use_);
  for (const int8_t own : plan.columns) {
    const int symbol = (kMiddleClass + own - plan.shape.lowest) / (plan.coarse ? 2 : 1);
    rans.put(columns_.range(symbol));
    note(symbol, alphabet);
  }
}

void PlanCode::put_shape(FineEncoder& rans, const LanePlan& plan) const {
  const auto bits = [&](int value, int count) { rans.put_bits(static_cast<uint32_t>(value), count); };
  bits(plan.shape.width, LaneShape::kWidthBits);
  bits(plan.shape.spread, LaneShape::kSpreadBits);
  bits(plan.rule, LanePlan::kRuleBits);
  bits(plan.classed ? 1 : 0, 1);
  if (plan.classed) {
    if (plan.rule != 0) bits(plan.power, LanePlan::kPowerBits);
    bits(plan.shape.lowest, LaneShape::kClassBits);
    bits(plan.shape.highest, LaneShape::kClassBits);
  } else if (plan.rule != 0) {
    FAIRWAY_ASSERT(near_usual(plan), "a plan without classes has the mean square of its width");
    bits(plan.power - usual_power(plan.shape.width) + (1 << (LanePlan::kNearBits - 1)), LanePlan::kNearBits);
  }
}

void PlanCode::get_shape(FineDecoder& rans, LanePlan& plan, const std::string& where) const {
  const auto bits = [&](int count) { return static_cast<int>(rans.get_bits(count)); };
  plan.shape.width = bits(LaneShape::kWidthBits);
  plan.shape.spread = bits(LaneShape::kSpreadBits);
  plan.rule = bits(LanePlan::kRuleBits);
  plan.classed = bits(1) != 0;
  if (!plan.classed) {
    reach_rows(plan);
    if (plan.rule == 0) return;
    const int power = usual_power(plan.shape.width) + bits(LanePlan::kNearBits) - (1 << (LanePlan::kNearBits - 1));
    plan.power = std::clamp(power, 0, (1 << LanePlan::kPowerBits) - 1);
    return;
  }
  if (plan.rule != 0) plan.power = bits(LanePlan::kPowerBits);
  plan.shape.lowest = bits(LaneShape::kClassBits);
  plan.shape.highest = bits(LaneShape::kClassBits);
  if (plan.shape.lowest > kMiddleClass || plan.shape.highest < kMiddleClass)
    throw InputError(where + "classes " + std::to_string(plan.shape.lowest) + " to " + std::to_string(plan.shape.highest) +
                     " leave out the middle one");
}

LanePlan PlanCode::get(FineDecoder& rans, const WeightTarget& block, const std::string& where) {
  const auto bits = [&](int count) { return static_cast<int>(rans.get_bits(count)); };
  LanePlan plan;
  if (any_ && bits(1) == 0) {
    plan = before_;
    plan.columns.clear(), plan.coarse = false;
  } else {
    plan.shape.largest = bits(level_bits(block.level));
    if (plan.shape.largest > 0) get_shape(rans, plan, where);
  }
  plan.shape.trellis = block.trellis;
  before_ = plan, any_ = true;
  if (plan.shape.largest == 0) return plan;
  const bool by_column = plan.classed && bits(1) != 0;
  if (block.cols > kMostContextCols && (by_column || plan.rule != 0))
    throw InputError(where + "contexts for rows of " + std::to_string(block.cols) + " weights, at most " +
                     std::to_string(kMostContextCols) + " have any");
  if (!by_column) return plan;
  plan.coarse = bits(1) != 0;
  const FineModel::Alphabet alphabet = column_alphabet(plan);
  columns_.refresh(alphabet, use_);
  plan.columns.resize(static_cast<size_t>(block.cols));
  for (int8_t& own : plan.columns) {
    const int symbol = rans.get(columns_);
    own = static_cast<int8_t>(plan.shape.lowest + symbol * (plan.coarse ? 2 : 1) - kMiddleClass);
    note(symbol, alphabet);
  }
  return plan;
}

}  // namespace fairway
