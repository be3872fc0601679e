// The encoding side of lane_coder.h.
#include <cmath>
#include <cstring>

#include "artifact/byte_reader.h"
#include "artifact/lane_coder.h"
#include "artifact/lane_fit.h"
#include "artifact/lane_plan_code.h"
#include "artifact/lane_walk.h"

namespace fairway {
namespace {

// Sixteen states, fed backwards.
class LaneEncoder {
 public:
  void put(LaneRange range, int lane) {
    kept_.push_back(static_cast<uint32_t>(range.start) << 16 | static_cast<uint32_t>(range.freq) << 4 |
                    static_cast<uint32_t>(lane));
  }
  void reserve(int64_t symbols) { kept_.reserve(static_cast<size_t>(symbols)); }
  size_t count() const { return kept_.size(); }
  double bits_since(size_t first) const {
    double bits = 0;
    for (size_t i = first; i < kept_.size(); ++i)
      bits += kLaneScaleBits - std::log2(static_cast<double>(kept_[i] >> 4 & 0xFFF));
    return bits;
  }
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
  void tensor(const WeightBlock& block, const LanePlan& plan) {
    code_.put(fine_, plan, block.level);
    if (!before_ || before_->shape.largest != plan.shape.largest) escapes_.emplace(plan.shape.largest, FineModel::Use::encode);
    before_ = plan;
    if (plan.shape.largest == 0) return;
    const TensorWalk walk(plan, block.cols, tables_.of(plan.shape));
    if (block.trellis) return columns(walk, block);
    for (int64_t row = 0; row < block.rows; row += kLaneRows)
      rows(walk, block.q + row * block.cols, std::min<int64_t>(kLaneRows, block.rows - row), block.cols);
  }
  // Marks a place, to tell what was put from there on.
  std::pair<size_t, size_t> place() const { return {fine_.count(), lanes_.count()}; }
  double bits_since(std::pair<size_t, size_t> first) const {
    return fine_.bits_since(first.first) + lanes_.bits_since(first.second);
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
      for (int64_t k = j; k < end; ++k)
        for (int64_t r = 0; r < count; ++r)
          put(walk, walk.own(k, row_class[static_cast<size_t>(r)], q[r * cols + k]), q[r * cols + k], static_cast<int>(r));
      put_escaped();
      if (walk.gauge.sign() == 0) continue;
      for (int64_t r = 0; r < count; ++r)
        for (int64_t k = j; k < end; ++k) squares[static_cast<size_t>(r)] += q[r * cols + k] * q[r * cols + k];
    }
  }
  void columns(const TensorWalk& walk, const WeightBlock& block) {
    std::vector<int32_t> squares(static_cast<size_t>(block.rows), 0);
    for (int64_t j = 0; j < block.cols; j += kLaneCols) {
      const int64_t end = std::min<int64_t>(j + kLaneCols, block.cols);
      for (int64_t row = 0; row < block.rows; ++row) {
        int32_t& sum = squares[static_cast<size_t>(row)];
        const int8_t* q = block.q + row * block.cols;
        const int row_class = walk.gauge.row_class(sum, j / kLaneCols);
        for (int64_t k = j; k < end; ++k)
          put(walk, walk.own(k, row_class, q[k]), q[k], static_cast<int>(k - j)), sum += q[k] * q[k];
        if ((row + 1) % kLaneRows == 0 || row + 1 == block.rows) put_escaped();
      }
    }
  }
  void put_escaped() {
    for (const Escaped& own : escaped_) {
      fine_.put(escapes_->model().range(own.magnitude));
      fine_.put_bits(static_cast<uint32_t>(own.negative), 1);
      escapes_->note(own.magnitude);
    }
    escaped_.clear();
  }
  void put(const TensorWalk& walk, const LaneClass& own, int value, int lane) {
    const int magnitude = std::abs(value);
    const bool beyond = magnitude > own.core, trellis = walk.tables.trellis();
    if (beyond)
      escaped_.push_back(
          {trellis ? (magnitude - first_beyond(own.core, value, value < 0)) / 4 : magnitude - own.core - 1, value < 0 ? 1 : 0});
    const LaneRange range = own.ranges[static_cast<size_t>(!beyond ? value - kEscape : trellis ? value & 3 : 0)];
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

}  // namespace

std::vector<std::span<const WeightBlock>> lane_parts(std::span<const WeightBlock> blocks) { return chunks_of(blocks); }

LaneCode encode_lane_part(std::span<const WeightBlock> part, bool tell_bits) {
  const int64_t count = weights_of(part);
  ChunkEncoder encoder(count >= kLockstepWeights, count);
  const std::vector<LanePlan> fitted = fitted_plans(part);
  LaneCode out;
  for (size_t k = 0; k < fitted.size(); ++k) {
    const auto first = encoder.place();
    if (part[k].rows * part[k].cols > 0) encoder.tensor(part[k], fitted[k]);
    if (tell_bits) out.bits.push_back(encoder.bits_since(first));
  }
  out.plans = encoder.plans();
  out.lanes = encoder.lanes();
  return out;
}

std::string joined_lanes(std::span<const LaneCode> parts) {
  std::string sizes, data;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool lockstep = !parts[i].lanes.empty(), last = i + 1 == parts.size();
    if (lockstep || !last) put_varint(sizes, parts[i].plans.size());
    if (lockstep && !last) put_varint(sizes, parts[i].lanes.size());
    data += parts[i].plans + parts[i].lanes;
  }
  return sizes + data;
}

std::string encode_lanes(std::span<const WeightBlock> blocks, std::vector<double>* bits) {
  std::vector<LaneCode> codes;
  for (const auto& part : lane_parts(blocks)) {
    codes.push_back(encode_lane_part(part, bits != nullptr));
    if (bits != nullptr) bits->insert(bits->end(), codes.back().bits.begin(), codes.back().bits.end());
  }
  return joined_lanes(codes);
}

}  // namespace fairway
