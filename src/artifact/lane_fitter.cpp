#include "artifact/lane_fitter.h"

#include <algorithm>
#include <cmath>

#include "artifact/lane_plan_code.h"
#include "base/error.h"

namespace fairway {
namespace {

constexpr int64_t kFitWeights = 1 << 17;
constexpr double kColumnPrior = 2;  // rows that a tensor's mean counts for in a column's
constexpr int kRowReach = kRowSteps / 2;

}  // namespace

LaneFitter::Sums LaneFitter::sums_of(const WeightBlock& block) {
  Sums out;
  out.columns.resize(static_cast<size_t>(block.cols));
  std::vector<int32_t> part(out.columns.size());
  int64_t squares = 0, magnitude = 0;
  int largest = 0;
  for (int64_t i = 0; i < block.rows; ++i) {
    const int8_t* row = block.q + i * block.cols;
    int32_t row_squares = 0;
    for (int64_t j = 0; j < block.cols; ++j) {
      const int size = row[j] < 0 ? -row[j] : row[j];
      part[static_cast<size_t>(j)] += size;
      row_squares += size * size;
      largest = std::max(largest, size);
      if ((j & 0xFFFF) == 0xFFFF) squares += row_squares, row_squares = 0;
    }
    squares += row_squares;
    if (i % 4096 != 4095 && i + 1 != block.rows) continue;
    for (size_t j = 0; j < part.size(); ++j) out.columns[j] += part[j], magnitude += part[j], part[j] = 0;
  }
  out.largest = largest, out.magnitude = static_cast<double>(magnitude), out.squares = static_cast<double>(squares);
  return out;
}

LaneFitter::LaneFitter(const WeightBlock& block)
    : block_(block),
      sums_(sums_of(block)),
      count_(static_cast<double>(block.rows * block.cols)),
      step_(std::max<int64_t>(1, block.rows * block.cols / kFitWeights)) {
  FAIRWAY_ASSERT(sums_.largest <= block.level, "a quantized weight lies beyond its grid");
  int64_t sampled = 0;
  for (int64_t i = 0; i < block.rows; i += step_) sampled += block.cols;
  factor_ = count_ / static_cast<double>(sampled);
}

LanePlan LaneFitter::fit() {
  least_ = INFINITY;
  LanePlan plain;
  plain.shape.largest = sums_.largest;
  plain.shape.trellis = block_.trellis;
  plain.power = nearest_power(sums_.squares / count_);
  plain.shape.width =
      std::clamp(static_cast<int>(std::lround(32 * (0.5 * std::log2(sums_.squares / count_) + 6))), 0, kLaneWidths - 1);
  const bool wide = block_.cols > kMostContextCols;
  consider(plain);
  if (!wide && block_.rows >= 4) {
    for (const bool coarse : {false, true}) {
      LanePlan plan = plain;
      set_columns(plan, coarse);
      consider(plan);
    }
  }
  if (!wide) {
    const LanePlan base = best_;
    for (int rule = 1; rule < static_cast<int>(kRowRules.size()); ++rule) {
      LanePlan plan = base;
      plan.rule = rule, plan.power = plain.power;
      reach(plan);
      consider(plan);
    }
  }
  return best_;
}

// Classes from the columns' lowest to their highest, and as far beyond as rows may go.
void LaneFitter::reach(LanePlan& plan) {
  if (!plan.classed) return reach_rows(plan);
  int low = 0, high = 0;
  for (const int8_t c : plan.columns) low = std::min<int>(low, c), high = std::max<int>(high, c);
  const int more = plan.rule != 0 ? kRowReach : 0;
  plan.shape.lowest = kMiddleClass + low, plan.shape.highest = kMiddleClass + high;
  // Even classes of coarse columns are counted from the lowest, so that one is moved by twos.
  plan.shape.lowest -= std::min(more, plan.shape.lowest) & ~1;
  plan.shape.highest = std::min(plan.shape.highest + more, kLaneClasses - 1);
}

void LaneFitter::set_columns(LanePlan& plan, bool coarse) const {
  const double mean = sums_.magnitude / count_;
  plan.coarse = coarse, plan.classed = true;
  plan.columns.resize(static_cast<size_t>(block_.cols));
  const int step = coarse ? 2 : 1, most = kMiddleClass - 2;
  for (size_t j = 0; j < plan.columns.size(); ++j) {
    const double own =
        (static_cast<double>(sums_.columns[j]) + kColumnPrior * mean) / (static_cast<double>(block_.rows) + kColumnPrior);
    const double steps = static_cast<double>(kClassesPerOctave) / step * std::log2(own / mean);
    const int index = static_cast<int>(std::lround(steps)) * step;
    plan.columns[j] = static_cast<int8_t>(std::clamp(index, -most, most));
  }
  reach(plan);
}

const LaneFitter::Costs& LaneFitter::costs(int width, const LaneShape& shape) {
  const auto [at, fresh] = costs_.try_emplace((shape.largest * kLaneWidths + width) * 8 + shape.spread);
  if (!fresh) return at->second;
  const auto bits = [](LaneRange range) { return std::log2(static_cast<double>(kLaneScale) / std::max<int>(range.freq, 1)); };
  const auto set = [&](LaneLevels levels, int first, int step) {
    const LaneClass own = lane_class(width, shape.spread, shape.largest, levels);
    const double escape = bits(own.ranges[static_cast<size_t>(first)]) + 1;
    for (int v = first; v <= kMostLevel; v += step)
      at->second[static_cast<size_t>(v)] = static_cast<float>(v <= own.core ? bits(own.ranges[static_cast<size_t>(v - kEscape)])
                                                                            : escape + 1.5 * (v - own.core) / (step * step));
  };
  if (!shape.trellis) set(LaneLevels::all, 0, 1);
  if (shape.trellis) set(LaneLevels::even, 0, 2), set(LaneLevels::odd, 1, 2);
  return at->second;
}

double LaneFitter::cost_of(const Counts& counts, const LaneShape& shape) {
  double bits = 0;
  for (int index = shape.lowest; index <= shape.highest; ++index) {
    const auto& own = counts[static_cast<size_t>(index)];
    if (own[0] == 0 && std::all_of(own.begin(), own.end(), [](uint32_t n) { return n == 0; })) continue;
    const Costs& cost = costs(width_of_class(shape.width, index), shape);
    for (int v = 0; v <= sums_.largest; ++v)
      bits += own[static_cast<size_t>(v)] * static_cast<double>(cost[static_cast<size_t>(v)]);
  }
  return bits;
}

void LaneFitter::count(const LanePlan& plan, Counts& counts) const {
  for (auto& own : counts) own.fill(0);
  const RowGauge gauge(plan, block_.cols);
  for (int64_t i = 0; i < block_.rows; i += step_) {
    const int8_t* row = block_.q + i * block_.cols;
    int32_t squares = 0;
    for (int64_t j = 0; j < block_.cols; j += kLaneCols) {
      const int own = kMiddleClass + gauge.row_class(squares, j / kLaneCols);
      for (int64_t k = j; k < std::min<int64_t>(j + kLaneCols, block_.cols); ++k) {
        const int size = row[k] < 0 ? -row[k] : row[k];
        const int index = own + (plan.columns.empty() ? 0 : plan.columns[static_cast<size_t>(k)]);
        ++counts[static_cast<size_t>(std::clamp(index, plan.shape.lowest, plan.shape.highest))][static_cast<size_t>(size)];
        squares += size * size;
      }
    }
  }
}

// The shape that fits best: costs have one valley along the width.
double LaneFitter::shaped(const Counts& counts, LaneShape& shape) {
  double least = INFINITY;
  LaneShape best = shape;
  for (int spread = 0; spread < static_cast<int>(kLaneSpreads.size()); ++spread) {
    LaneShape own = best;
    own.spread = spread;
    double here = cost_of(counts, own);
    for (const int step : {-1, 1}) {
      for (LaneShape next = own;;) {
        next.width += step;
        if (next.width < 0 || next.width >= kLaneWidths) break;
        const double cost = cost_of(counts, next);
        if (!(cost < here)) break;
        here = cost, own = next;
      }
    }
    if (here < least) {
      least = here, best = own;
    } else if (spread > best.spread + 1) {
      break;
    }
  }
  shape = best;
  return least;
}

double LaneFitter::header_bits(const LanePlan& plan, bool same) const {
  double bits = 2;
  if (!same) bits += LaneShape::kWidthBits + LaneShape::kSpreadBits + LanePlan::kRuleBits + 7;
  if (!same && plan.rule != 0) bits += plan.classed ? LanePlan::kPowerBits : LanePlan::kNearBits;
  if (!same && plan.classed) bits += 2 * LaneShape::kClassBits;
  if (plan.columns.empty()) return bits;
  std::array<double, 256> seen{};
  for (const int8_t c : plan.columns) ++seen[static_cast<uint8_t>(c)];
  for (const double n : seen) bits += n > 0 ? n * std::log2(static_cast<double>(block_.cols) / n) + 4 : 0;
  return bits;
}

void LaneFitter::consider(LanePlan plan) {
  Counts counts;
  count(plan, counts);
  const double bits = shaped(counts, plan.shape) * factor_ + header_bits(plan, false);
  const bool sayable = plan.rule == 0 || plan.classed || near_usual(plan);
  if (sayable && bits < least_) least_ = bits, best_ = plan;
}

LaneFitter::Use LaneFitter::use(const LanePlan& plan) {
  Use out{plan, INFINITY, INFINITY};
  out.plan.shape.trellis = block_.trellis;
  if (plan.shape.largest < sums_.largest || (block_.cols > kMostContextCols && plan.rule != 0)) return out;
  // Columns as coarse as those before, by which the model of their classes has learned.
  const bool by_column = plan.classed && !best_.columns.empty();
  LanePlan own = best_;
  if (by_column && plan.coarse != best_.coarse) set_columns(own, plan.coarse);
  out.plan.columns = by_column ? own.columns : std::vector<int8_t>{}, out.plan.coarse = own.coarse;
  const int top = plan.shape.highest - kMiddleClass, bottom = plan.shape.lowest - kMiddleClass;
  for (const int8_t c : out.plan.columns)
    if (c < bottom || c > top || (out.plan.coarse && (c - bottom) % 2 != 0)) return out;
  Counts counts;
  count(out.plan, counts);
  const double bits = cost_of(counts, out.plan.shape) * factor_;
  out.repeated = bits + header_bits(out.plan, true);
  if (plan.shape.largest <= block_.level) out.said = bits + header_bits(out.plan, false);  // said in the bits of the grid
  return out;
}

}  // namespace fairway
