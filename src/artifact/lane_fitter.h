// What plans cost one tensor, on a sample of its rows, and which costs the least.
#pragma once

#include <map>

#include "artifact/lane_plan.h"
#include "artifact/weight_coder.h"

namespace fairway {

class LaneFitter {
 public:
  explicit LaneFitter(const WeightBlock& block);
  int largest() const { return sums_.largest; }
  bool sampled() const { return step_ > 1; }
  const WeightBlock& block() const { return block_; }
  LanePlan fit();  // largest() > 0

  // Bits of this tensor after fit() by the shape and rule of a plan, its own columns with it where that plan knows columns;
  // infinite where it cannot be.
  struct Use {
    LanePlan plan;
    double repeated = 0, said = 0;  // where the tensor before it has that plan; where it is said here
  };
  Use use(const LanePlan& plan);

 private:
  using Counts = std::array<std::array<uint32_t, kMostLevel + 1>, kLaneClasses>;  // of |q| in each class
  using Costs = std::array<float, kMostLevel + 1>;                                // bits of a weight, sign and all
  struct Sums {
    int largest = 0;
    double magnitude = 0, squares = 0;
    std::vector<int64_t> columns;  // of |q|
  };
  static Sums sums_of(const WeightBlock& block);
  static void reach(LanePlan& plan);
  void set_columns(LanePlan& plan, bool coarse) const;
  void consider(LanePlan plan);
  void count(const LanePlan& plan, Counts& counts) const;
  double shaped(const Counts& counts, LaneShape& shape);
  double cost_of(const Counts& counts, const LaneShape& shape);
  const Costs& costs(int width, const LaneShape& shape);
  double header_bits(const LanePlan& plan, bool same) const;

  WeightBlock block_;
  Sums sums_;
  double count_;
  int64_t step_;
  double factor_ = 1;
  std::map<int, Costs> costs_;
  LanePlan best_;
  double least_ = 0;
};

}  // namespace fairway
