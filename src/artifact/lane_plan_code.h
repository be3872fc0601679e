// A tensor's plan as stored: fixed bits through the fine coder, columns' classes by a model that learns over the chunk.
#pragma once

#include <algorithm>
#include <bit>

#include "artifact/lane_plan.h"
#include "artifact/rans.h"
#include "artifact/weight_coder.h"

namespace fairway {

class PlanCode {
 public:
  explicit PlanCode(FineModel::Use use);
  // What the plan before it says need not be said again, but for columns.
  void put(FineEncoder& rans, const LanePlan& plan, int level);
  LanePlan get(FineDecoder& rans, const WeightTarget& block, const std::string& where);

 private:
  void put_shape(FineEncoder& rans, const LanePlan& plan) const;
  void get_shape(FineDecoder& rans, LanePlan& plan, const std::string& where) const;
  FineModel::Alphabet column_alphabet(const LanePlan& plan) const;
  void note(int symbol, FineModel::Alphabet alphabet);

  FineModel::Use use_;
  FineModel columns_;
  LanePlan before_;
  bool any_ = false;
};

inline int level_bits(int level) { return std::bit_width(static_cast<unsigned>(std::min(level, kMostLevel))); }
// Whether a plan says the same as another but for its columns.
inline bool same_but_columns(const LanePlan& a, const LanePlan& b) {
  LaneShape shape = a.shape;
  shape.trellis = b.shape.trellis;
  return shape == b.shape && a.rule == b.rule && a.power == b.power && a.classed == b.classed;
}

}  // namespace fairway
