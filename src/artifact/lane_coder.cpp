#include "artifact/lane_coder.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "artifact/byte_reader.h"
#include "artifact/lane_fit.h"
#include "artifact/lane_kernels.h"
#include "artifact/lane_plan_code.h"
#include "base/error.h"

namespace fairway {
namespace {

constexpr int64_t kChunkWeights = 1 << 19, kLockstepWeights = 3 << 17;  // sixteen states cost 32 bytes
constexpr uint32_t kLaneFloor = 1U << 16;
constexpr size_t kStateBytes = kLaneRows * sizeof(uint32_t);

template <class Block>
int64_t count_of(std::span<const Block> blocks) {
  int64_t count = 0;
  for (const Block& block : blocks) count += block.rows * block.cols;
  return count;
}

// Both sides cut a stream alike: a chunk ends with the tensor that fills it.
template <class Block>
std::vector<std::span<const Block>> cut(std::span<const Block> blocks) {
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

// What walking a tensor needs on both sides.
struct TensorWalk {
  TensorWalk(const LanePlan& plan, int64_t cols, const LaneTables& shared) : tables(shared), gauge(plan, cols) {
    const int middle = kMiddleClass - plan.shape.lowest;
    columns.assign(plan.columns.empty() ? kLaneCols : static_cast<size_t>(cols), middle);
    for (size_t j = 0; j < plan.columns.size(); ++j) columns[j] += plan.columns[j];
    by_column = !plan.columns.empty();
  }
  const int32_t* columns_at(int64_t j) const { return columns.data() + (by_column ? j : 0); }
  int index(int64_t j, int row_class) const {
    return std::clamp(columns[static_cast<size_t>(by_column ? j : j % kLaneCols)] + row_class, 0, tables.last());
  }

  const LaneTables& tables;
  RowGauge gauge;
  std::vector<int32_t> columns;
  bool by_column = false;
};

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

// Sixteen states, fed backwards.
class LaneEncoder {
 public:
  void put(LaneRange range, int lane) {
    kept_.push_back(static_cast<uint32_t>(range.start) << 16 | static_cast<uint32_t>(range.freq) << 4 |
                    static_cast<uint32_t>(lane));
  }
  void reserve(int64_t symbols) { kept_.reserve(static_cast<size_t>(symbols)); }
  std::string finish() const {
    std::vector<uint16_t> words;
    words.reserve(kept_.size() / 3 + 8);
    std::array<uint32_t, kLaneRows> states;
    states.fill(kLaneFloor);
    for (size_t i = kept_.size(); i-- > 0;) {
      const uint32_t freq = kept_[i] >> 4 & 0xFFF, start = kept_[i] >> 16;
      uint32_t x = states[kept_[i] & 15];
      if (x >= uint64_t{freq} << (32 - kLaneScaleBits)) words.push_back(static_cast<uint16_t>(x)), x >>= 16;
      states[kept_[i] & 15] = (x / freq << kLaneScaleBits) + x % freq + start;
    }
    std::string out(kStateBytes + 2 * words.size(), '\0');
    std::memcpy(out.data(), states.data(), kStateBytes);  // little-endian, as everything in the file
    std::reverse(words.begin(), words.end());
    std::memcpy(out.data() + kStateBytes, words.data(), 2 * words.size());
    return out;
  }

 private:
  std::vector<uint32_t> kept_;  // start, freq, lane
};

class ChunkEncoder {
 public:
  ChunkEncoder(bool lockstep, int64_t weights) : lockstep_(lockstep) {
    if (lockstep) lanes_.reserve(weights);
    if (!lockstep) fine_.reserve(static_cast<size_t>(weights));
  }
  void tensor(const WeightBlock& block) {
    const LanePlan plan = fitted_plan(block, before_ ? &*before_ : nullptr);
    code_.put(fine_, plan, block.level);
    if (!before_ || before_->shape.largest != plan.shape.largest) escapes_.emplace(plan.shape.largest, FineModel::Use::encode);
    before_ = plan;
    if (plan.shape.largest == 0) return;
    const TensorWalk walk(plan, block.cols, tables_.of(plan.shape));
    for (int64_t row = 0; row < block.rows; row += kLaneRows)
      rows(walk, block.q + row * block.cols, std::min<int64_t>(kLaneRows, block.rows - row), block.cols);
  }
  std::string plans() const { return fine_.finish(); }
  std::string lanes() const { return lockstep_ ? lanes_.finish() : ""; }

 private:
  struct Escaped {
    int magnitude, negative;
  };
  void rows(const TensorWalk& walk, const int8_t* q, int64_t count, int64_t cols) {
    std::array<int32_t, kLaneRows> squares{};
    std::array<int, kLaneRows> row_class{};
    for (int64_t j = 0; j < cols; j += kLaneCols) {
      const int64_t end = std::min<int64_t>(j + kLaneCols, cols);
      for (int64_t r = 0; r < count; ++r)
        row_class[static_cast<size_t>(r)] = walk.gauge.row_class(squares[static_cast<size_t>(r)], j / kLaneCols);
      escaped_.clear();
      for (int64_t k = j; k < end; ++k)
        for (int64_t r = 0; r < count; ++r)
          put(walk.tables[walk.index(k, row_class[static_cast<size_t>(r)])], q[r * cols + k], static_cast<int>(r));
      for (const Escaped& own : escaped_) {
        fine_.put(escapes_->model().range(own.magnitude));
        fine_.put_bits(static_cast<uint32_t>(own.negative), 1);
        escapes_->note(own.magnitude);
      }
      if (walk.gauge.sign() == 0) continue;
      for (int64_t r = 0; r < count; ++r)
        for (int64_t k = j; k < end; ++k) squares[static_cast<size_t>(r)] += q[r * cols + k] * q[r * cols + k];
    }
  }
  void put(const LaneClass& own, int value, int lane) {
    const int magnitude = std::abs(value);
    const bool beyond = magnitude > own.core;
    if (beyond) escaped_.push_back({magnitude - own.core - 1, value < 0 ? 1 : 0});
    const LaneRange range = own.ranges[beyond ? 0 : static_cast<size_t>(value - kEscape)];
    if (lockstep_) return lanes_.put(range, lane);
    if (range.freq == kLaneScale) return;  // the only one there is
    constexpr int kFiner = kFineScaleBits - kLaneScaleBits;
    fine_.put({static_cast<uint16_t>(range.start << kFiner), static_cast<uint16_t>(range.freq << kFiner)});
  }

  bool lockstep_;
  FineEncoder fine_;
  LaneEncoder lanes_;
  KeptTables tables_;
  PlanCode code_{FineModel::Use::encode};
  std::optional<EscapeModel> escapes_;
  std::optional<LanePlan> before_;
  std::vector<Escaped> escaped_;  // of the group at hand
};

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
    for (int64_t row = 0; row < block.rows; row += kLaneRows)
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
  bool decode_single(LaneGroup& group) {
    bool escaped = false;
    for (int j = 0; j < group.count; ++j) {
      for (int r = 0; r < group.rows; ++r) {
        const int index = std::clamp(group.columns[j] + group.row_class[r], 0, group.last);
        group.tile[j][r] =
            static_cast<int8_t>(fine_.get_entry(group.entries + (static_cast<uint32_t>(index) << kLaneScaleBits)));
        escaped |= group.tile[j][r] == kEscape;
      }
    }
    return escaped;
  }
  void mend_escapes(const TensorWalk& walk, LaneGroup& group) {
    for (int j = 0; j < group.count; ++j) {
      for (int r = 0; r < group.rows; ++r) {
        if (group.tile[j][r] != kEscape) continue;
        const int symbol = fine_.get(escapes_->model());
        escapes_->note(symbol);
        const int index = std::clamp(group.columns[j] + group.row_class[r], 0, group.last);
        const int magnitude = walk.tables[index].core + 1 + symbol;
        if (magnitude > largest_)
          throw InputError(where_ + "an escape stands for " + std::to_string(magnitude) + ", the largest level is " +
                           std::to_string(largest_));
        group.tile[j][r] = static_cast<int8_t>(fine_.get_bits(1) != 0 ? -magnitude : magnitude);
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
};

}  // namespace

std::string encode_lanes(std::span<const WeightBlock> blocks) {
  std::string sizes, data;
  const auto chunks = cut(blocks);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const int64_t count = count_of(chunks[i]);
    const bool lockstep = count >= kLockstepWeights, last = i + 1 == chunks.size();
    ChunkEncoder encoder(lockstep, count);
    for (const WeightBlock& block : chunks[i])
      if (block.rows * block.cols > 0) encoder.tensor(block);
    const std::string plans = encoder.plans(), lanes = encoder.lanes();
    if (lockstep || !last) put_varint(sizes, plans.size());
    if (lockstep && !last) put_varint(sizes, lanes.size());
    data += plans + lanes;
  }
  return sizes + data;
}

std::vector<LaneChunk> lane_chunks(std::string_view bytes, std::span<const WeightTarget> blocks, const std::string& where) {
  struct Sizes {
    bool lockstep;
    uint64_t plans, lanes;
  };
  constexpr uint64_t kRest = ~uint64_t{0};
  ByteReader reader(bytes, where);
  std::vector<LaneChunk> out;
  std::vector<Sizes> sizes;
  for (const auto& part : cut(blocks)) {
    out.push_back({.lockstep = count_of(part) >= kLockstepWeights, .blocks = part});
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
