// A plan costs some 30 bits to say and one to repeat, so tensors choose theirs together: the cheapest sequence out of what each
// would take for itself, also with room for the largest level of its neighbours, and of what lies between them. No tensor shall
// lie a thousandth above its own order-0 entropy, so bits beyond that count several times.
#include "artifact/lane_fit.h"

#include <cmath>

#include "artifact/lane_fitter.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

constexpr size_t kMostTogether = 16;  // every plan is tried on every tensor
constexpr double kAllowed = 1.001, kBeyond = 8;

struct Path {
  double bits = INFINITY;  // of the tensors up to this one
  size_t from = 0;         // the plan before it
};

class PlanChoice {
 public:
  PlanChoice(std::span<LaneFitter> fitters, const LanePlan* before) : fitters_(fitters) {
    int largest = 0;
    for (const LaneFitter& fitter : fitters) largest = std::max(largest, fitter.largest());
    if (before != nullptr) plans_.push_back(*before);
    std::vector<LanePlan> own;
    for (LaneFitter& fitter : fitters) {
      own.push_back(fitter.fit());
      plans_.push_back(own.back());
      most_.push_back(fitter.sampled() ? INFINITY : kAllowed * entropy_of(weights_of(fitter.block()), fitter.block().trellis));
      if (own.back().shape.largest == largest) continue;
      LanePlan wider = own.back();
      wider.shape.largest = largest;
      plans_.push_back(wider);
    }
    add_middle(own, largest);
    paths_.resize(fitters.size(), std::vector<Path>(plans_.size()));
    uses_.resize(fitters.size());
    for (size_t i = 0; i < fitters.size(); ++i) extend(i, before != nullptr);
  }

  std::vector<LanePlan> best() const {
    std::vector<LanePlan> out(fitters_.size());
    size_t last = least(fitters_.size() - 1);
    for (size_t i = fitters_.size(); i-- > 0;) {
      out[i] = uses_[i][last].plan;
      last = paths_[i][last].from;
    }
    return out;
  }

 private:
  size_t least(size_t tensor) const {
    size_t out = 0;
    for (size_t k = 0; k < plans_.size(); ++k)
      if (paths_[tensor][k].bits < paths_[tensor][out].bits) out = k;
    return out;
  }
  static std::span<const int8_t> weights_of(const WeightBlock& block) {
    return {block.q, static_cast<size_t>(block.rows * block.cols)};
  }
  // The mean width and mean square of all, by the rule of each.
  void add_middle(const std::vector<LanePlan>& own, int largest) {
    if (own.size() < 2) return;
    double width = 0, power = 0;
    for (const LanePlan& plan : own) {
      width += plan.shape.width / static_cast<double>(own.size());
      power += plan.power / static_cast<double>(own.size());
    }
    for (LanePlan plan : own) {
      if (plan.classed) continue;
      plan.shape.largest = largest;
      plan.shape.width = static_cast<int>(std::lround(width));
      plan.power = static_cast<int>(std::lround(power));
      reach_rows(plan);
      if (plan.rule == 0 || near_usual(plan)) plans_.push_back(plan);
    }
  }
  double counted(size_t tensor, double bits) const {
    return bits > most_[tensor] ? bits + kBeyond * (bits - most_[tensor]) : bits;
  }
  void extend(size_t i, bool begun) {  // plan 0 is in force at first where there was one before
    const size_t before = i == 0 ? 0 : least(i - 1);
    const double least_bits = i == 0 ? 0 : paths_[i - 1][before].bits;
    for (size_t k = 0; k < plans_.size(); ++k) {
      const LaneFitter::Use& use = uses_[i].emplace_back(fitters_[i].use(plans_[k]));
      const double kept = i == 0 ? (begun && k == 0 ? 0 : INFINITY) : paths_[i - 1][k].bits;
      paths_[i][k] = {least_bits + counted(i, use.said), before};
      const double repeated = kept + counted(i, use.repeated);
      if (repeated < paths_[i][k].bits) paths_[i][k] = {repeated, k};
    }
  }

  std::span<LaneFitter> fitters_;
  std::vector<LanePlan> plans_;
  std::vector<double> most_;                        // bits that each tensor shall take
  std::vector<std::vector<Path>> paths_;            // (tensors, plans)
  std::vector<std::vector<LaneFitter::Use>> uses_;  // likewise
};

}  // namespace

std::vector<LanePlan> fitted_plans(std::span<const WeightBlock> blocks) {
  std::vector<LanePlan> out(blocks.size());
  std::vector<LaneFitter> together;
  std::vector<size_t> places;
  const LanePlan* before = nullptr;
  const auto choose = [&] {
    if (together.empty()) return;
    const bool alone = together.size() == 1 && before == nullptr;
    std::vector<LanePlan> best = alone ? std::vector{together[0].fit()} : PlanChoice(together, before).best();
    for (size_t i = 0; i < best.size(); ++i) out[places[i]] = std::move(best[i]);
    before = &out[places.back()];
    together.clear(), places.clear();
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].rows * blocks[i].cols == 0) continue;
    LaneFitter fitter(blocks[i]);
    const bool zero = fitter.largest() == 0;
    if (!zero) together.push_back(std::move(fitter)), places.push_back(i);
    if (zero || together.size() == kMostTogether) choose();
    if (zero) before = nullptr;  // its plan says that there is nothing
  }
  choose();
  return out;
}

}  // namespace fairway
