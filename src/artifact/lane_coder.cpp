#include "artifact/lane_coder.h"

#include <algorithm>
#include <cstring>

#include "artifact/byte_reader.h"
#include "artifact/lane_kernels.h"
#include "artifact/lane_plan_code.h"
#include "artifact/lane_walk.h"
#include "base/error.h"
#include "base/trellis.h"

namespace fairway {
namespace {

class ChunkDecoder {
 public:
  ChunkDecoder(const LaneChunk& chunk, const std::string& where)
      : where_(where), lockstep_(chunk.lockstep), fine_(chunk.plans), kernels_(lane_kernels()) {
    if (!lockstep_) return;
    std::memcpy(states_.x, chunk.lanes.data(), kStateBytes);
    states_.place = chunk.lanes.data() + kStateBytes, states_.end = chunk.lanes.data() + chunk.lanes.size();
  }
  void tensor(const WeightTarget& block) {
    const LanePlan plan = code_.get(fine_, block, where_);
    if (plan.shape.largest != largest_) escapes_.emplace(plan.shape.largest, FineModel::Use::decode);
    largest_ = plan.shape.largest;
    if (largest_ == 0) {
      std::fill_n(block.q, block.rows * block.cols, int8_t{0});
      return;
    }
    const TensorWalk walk(plan, block.cols, tables_.of(plan.shape));
    for (int64_t j = 0; block.trellis && j < block.cols; j += kLaneCols) columns(walk, block, j);
    for (int64_t row = 0; !block.trellis && row < block.rows; row += kLaneRows)
      rows(walk, block.q + row * block.cols, std::min<int64_t>(kLaneRows, block.rows - row), block.cols);
    if (states_.ran_out) throw InputError(where_ + "the coded weights end before all are decoded");
  }
  void end() const {
    const bool lanes = !lockstep_ || (states_.place == states_.end && std::all_of(states_.x, states_.x + kLaneRows,
                                                                                  [](uint32_t x) { return x == kLaneFloor; }));
    if (!lanes) throw InputError(where_ + "the sixteen states do not end where encoding began");
    if (!fine_.ended_well()) throw InputError(where_ + "the state of the plans does not end where encoding began");
  }

 private:
  void rows(const TensorWalk& walk, int8_t* q, int64_t count, int64_t cols) {
    LaneGroup group;
    group.entries = walk.tables.entries();
    group.last = walk.tables.last();
    group.rows = static_cast<int>(count);
    std::fill_n(group.squares, kLaneRows, 0);
    std::fill_n(group.row_class, kLaneRows, walk.gauge.row_class(0, 0));
    for (int64_t j = 0; j < cols; j += kLaneCols) {
      group.columns = walk.columns_at(j);
      group.count = static_cast<int>(std::min<int64_t>(kLaneCols, cols - j));
      if (lockstep_ ? kernels_.decode(states_, group) : decode_single(group)) mend_escapes(walk, group);
      LaneRowLimits next{0, 0, nullptr};
      if (walk.gauge.sign() != 0 && j + kLaneCols < cols) {
        const RowGauge::Group& after = walk.gauge[j / kLaneCols + 1];
        next = {walk.gauge.sign(), after.expected, after.limits.data()};
      }
      kernels_.finish(group, next, q + j, cols);
    }
  }
  // Sixteen columns down a trellis; rows' sums of squares are kept from one such group to the next.
  void columns(const TensorWalk& walk, const WeightTarget& block, int64_t j) {
    if (j == 0) {
      squares_.assign(static_cast<size_t>(block.rows), 0);
      classes_.assign(static_cast<size_t>(block.rows), walk.gauge.row_class(0, 0));
    }
    LaneGroup group;
    group.entries = walk.tables.entries(), group.last = walk.tables.last(), group.trellis = true;
    group.rows = static_cast<int>(std::min<int64_t>(kLaneCols, block.cols - j));
    std::copy_n(walk.columns_at(j), group.rows, group.row_class);
    const bool gauged = walk.gauge.sign() != 0 && j + kLaneCols < block.cols;
    for (int64_t row = 0; row < block.rows; row += kLaneRows) {
      if (row % kTrellisRows == 0) std::fill_n(group.trellis_state, kLaneRows, 0);
      group.columns = classes_.data() + row;
      group.count = static_cast<int>(std::min<int64_t>(kLaneRows, block.rows - row));
      if (lockstep_ ? kernels_.decode(states_, group) : decode_single(group)) mend_escapes(walk, group);
      for (int r = 0; r < group.count; ++r) {
        const int8_t* q = group.tile[r];
        std::copy_n(q, group.rows, block.q + (row + r) * block.cols + j);
        if (!gauged) continue;
        int32_t& sum = squares_[static_cast<size_t>(row + r)];
        for (int lane = 0; lane < kLaneCols; ++lane) sum += q[lane] * q[lane];
        classes_[static_cast<size_t>(row + r)] = walk.gauge.row_class(sum, j / kLaneCols + 1);
      }
    }
  }
  bool decode_single(LaneGroup& group) {
    bool escaped = false;
    for (int j = 0; j < group.count; ++j) {
      for (int r = 0; r < group.rows; ++r) {
        int index = std::clamp(group.columns[j] + group.row_class[r], 0, group.last);
        if (group.trellis) index = 2 * index + (group.trellis_state[r] & 1);
        group.tile[j][r] =
            static_cast<int8_t>(fine_.get_entry(group.entries + (static_cast<uint32_t>(index) << kLaneScaleBits)));
        escaped |= is_escape(group, group.tile[j][r]);
        if (group.trellis) group.trellis_state[r] = next_trellis_state(group.trellis_state[r], group.tile[j][r]);
      }
    }
    return escaped;
  }
  static bool is_escape(const LaneGroup& group, int q) { return q < (group.trellis ? -kTrellisLevel : -kMostLevel); }
  void mend_escapes(const TensorWalk& walk, LaneGroup& group) {
    for (int j = 0; j < group.count; ++j) {
      for (int r = 0; r < group.rows; ++r) {
        const int escape = group.tile[j][r];
        if (!is_escape(group, escape)) continue;
        const int symbol = fine_.get(escapes_->model());
        escapes_->note(symbol);
        const int index = std::clamp(group.columns[j] + group.row_class[r], 0, group.last);
        const bool negative = fine_.get_bits(1) != 0;
        const LaneClass& own = walk.tables.of(index, escape);
        const int magnitude = group.trellis ? first_beyond(own.core, escape, negative) + 4 * symbol : own.core + 1 + symbol;
        if (magnitude > largest_)
          throw InputError(where_ + "an escape stands for " + std::to_string(magnitude) + ", the largest level is " +
                           std::to_string(largest_));
        group.tile[j][r] = static_cast<int8_t>(negative ? -magnitude : magnitude);
      }
    }
  }

  const std::string& where_;
  bool lockstep_;
  FineDecoder fine_;
  const LaneKernels& kernels_;
  LaneStates states_{};
  KeptTables tables_;
  PlanCode code_{FineModel::Use::decode};
  std::optional<EscapeModel> escapes_;
  int largest_ = -1;
  std::vector<int32_t> squares_, classes_;  // of rows, under a trellis
};

}  // namespace

std::vector<LaneChunk> lane_chunks(std::string_view bytes, std::span<const WeightTarget> blocks, const std::string& where) {
  struct Sizes {
    bool lockstep;
    uint64_t plans, lanes;
  };
  constexpr uint64_t kRest = ~uint64_t{0};
  ByteReader reader(bytes, where);
  std::vector<LaneChunk> out;
  std::vector<Sizes> sizes;
  for (const auto& part : chunks_of(blocks)) {
    out.push_back({.lockstep = weights_of(part) >= kLockstepWeights, .blocks = part});
    const bool last = part.data() + part.size() == blocks.data() + blocks.size(), lockstep = out.back().lockstep;
    Sizes& own = sizes.emplace_back(Sizes{lockstep, kRest, lockstep ? kRest : 0});
    if (lockstep || !last) own.plans = reader.varint("the sizes of chunks");
    if (lockstep && !last) own.lanes = reader.varint("the sizes of chunks");
  }
  const auto take = [&](uint64_t size) { return reader.take(size == kRest ? reader.left() : size, "a chunk"); };
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].plans = take(sizes[i].plans);
    out[i].lanes = take(sizes[i].lanes);
    if (out[i].plans.empty()) throw InputError(where + "nothing is stored, not even the coder's state");
    if (out[i].lockstep && (out[i].lanes.size() < kStateBytes || out[i].lanes.size() % 2 != 0))
      throw InputError(where + std::to_string(out[i].lanes.size()) +
                       " bytes of states and words, expected 64 and an even number");
  }
  return out;
}

void decode_lane_chunk(const LaneChunk& chunk, std::span<const WeightTarget> into, const std::string& where) {
  ChunkDecoder decoder(chunk, where);
  for (const WeightTarget& block : into)
    if (block.rows * block.cols > 0) decoder.tensor(block);
  decoder.end();
}

void decode_lanes(std::string_view bytes, std::span<const WeightTarget> blocks, const std::string& where) {
  for (const LaneChunk& chunk : lane_chunks(bytes, blocks, where)) decode_lane_chunk(chunk, chunk.blocks, where);
}

}  // namespace fairway
