// What the two sides of the lanes' coder share: how a stream is cut, and how a tensor is walked.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "artifact/lane_plan.h"
#include "artifact/lane_tables.h"

namespace fairway {

inline constexpr int64_t kChunkWeights = 1 << 19, kLockstepWeights = 3 << 17;  // sixteen states cost 32 bytes
inline constexpr uint32_t kLaneFloor = 1U << 16;
inline constexpr size_t kStateBytes = kLaneRows * sizeof(uint32_t);

template <class Block>
int64_t weights_of(std::span<const Block> blocks) {
  int64_t count = 0;
  for (const Block& block : blocks) count += block.rows * block.cols;
  return count;
}

// Both sides cut a stream alike: a chunk ends with the tensor that fills it.
template <class Block>
std::vector<std::span<const Block>> chunks_of(std::span<const Block> blocks) {
  std::vector<std::span<const Block>> out;
  size_t first = 0;
  int64_t count = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    count += blocks[i].rows * blocks[i].cols;
    if (count < kChunkWeights && i + 1 < blocks.size()) continue;
    out.push_back(blocks.subspan(first, i + 1 - first));
    first = i + 1, count = 0;
  }
  return out;
}

// What walking a tensor needs.
struct TensorWalk {
  TensorWalk(const LanePlan& plan, int64_t cols, const LaneTables& shared) : tables(shared), gauge(plan, cols) {
    const int middle = kMiddleClass - plan.shape.lowest;
    columns.assign(plan.columns.empty() ? kLaneCols : static_cast<size_t>(cols), middle);
    for (size_t j = 0; j < plan.columns.size(); ++j) columns[j] += plan.columns[j];
    by_column = !plan.columns.empty();
  }
  const int32_t* columns_at(int64_t j) const { return columns.data() + (by_column ? j : 0); }
  // What is coded of a weight at this place: its class, of even or odd ones under a trellis.
  const LaneClass& own(int64_t j, int row_class, int q) const { return tables.of(index(j, row_class), q); }
  int index(int64_t j, int row_class) const {
    return std::clamp(columns[static_cast<size_t>(by_column ? j : j % kLaneCols)] + row_class, 0, tables.last());
  }

  const LaneTables& tables;
  RowGauge gauge;
  std::vector<int32_t> columns;
  bool by_column = false;
};

// The least magnitude above the core, under a trellis, that has the two lowest bits of q.
inline int first_beyond(int core, int q, bool negative) {
  const int next = core + 2;
  return (((negative ? -next : next) ^ q) & 3) == 0 ? next : next + 2;
}

// Tables of the last shape asked for: neighbours often share it.
class KeptTables {
 public:
  const LaneTables& of(const LaneShape& shape) {
    if (!tables_ || shape_ != shape) tables_.emplace(shape), shape_ = shape;
    return *tables_;
  }

 private:
  LaneShape shape_;
  std::optional<LaneTables> tables_;
};

}  // namespace fairway
