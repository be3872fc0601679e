// The coder of weights since version 3: exact, close to the entropy at every size, the same from vectors and plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "artifact/artifact.h"
#include "artifact/checksum_fold.h"
#include "artifact/gaussian_weights.h"
#include "artifact/lane_coder.h"
#include "artifact/lane_fit.h"
#include "artifact/lane_fitter.h"
#include "artifact/lane_kernels.h"
#include "artifact/lane_tables.h"
#include "artifact/sections.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

// Rows with one standard deviation, as SDClip makes them.
Values equal_rows(int64_t rows, int64_t cols, double spread, int level, uint64_t seed) {
  Rng rng(seed);
  Values out;
  std::vector<double> row(static_cast<size_t>(cols));
  for (int64_t i = 0; i < rows; ++i) {
    double squares = 0;
    for (double& w : row) w = rng.normal(), squares += w * w;
    for (const double w : row) out.push_back(clipped(spread * w / std::sqrt(squares / static_cast<double>(cols)), level));
  }
  return out;
}

class KernelsForTest {
 public:
  explicit KernelsForTest(const LaneKernels& lanes) : before_(lane_kernels()) { use_lane_kernels(lanes); }
  ~KernelsForTest() { use_lane_kernels(before_); }

 private:
  const LaneKernels& before_;
};

struct Matrix {
  Values q;
  int64_t rows, cols;
  int level;
  bool trellis = false;
  WeightBlock block() const { return {q.data(), rows, cols, level, trellis}; }
};
struct Coded {
  double bytes = 0, entropy_bytes = 0;
};

// Encodes as one stream, decodes with both kinds of kernels into other memory, compares.
Coded round_trip(const std::vector<Matrix>& all) {
  std::vector<WeightBlock> blocks;
  Coded out;
  for (const Matrix& m : all) blocks.push_back(m.block()), out.entropy_bytes += entropy_of(m.q, m.trellis) / 8;
  const std::string bytes = encode_lanes(blocks);
  EXPECT_EQ(bytes, encode_lanes(blocks));
  out.bytes = static_cast<double>(bytes.size());
  for (const LaneKernels* lanes : {&generic_lanes, &lane_kernels()}) {
    const KernelsForTest use(*lanes);
    std::vector<Values> back;
    std::vector<WeightTarget> targets;
    for (const Matrix& m : all) {
      back.emplace_back(m.q.size(), int8_t{99});
      targets.push_back({back.back().data(), m.rows, m.cols, m.level, m.trellis});
    }
    decode_lanes(bytes, targets, "test: ");
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(back[i], all[i].q) << "tensor " << i;
  }
  return out;
}

void expect_at_entropy(const Coded& coded, double more, const std::string& what) {
  EXPECT_TRUE(coded.bytes <= 1.001 * coded.entropy_bytes + more)
      << what << ": " << coded.bytes << " bytes, entropy " << coded.entropy_bytes;
}

TEST(LaneTables, FrequenciesFillTheirScale) {
  for (int width = 0; width < kLaneWidths; width += 7) {
    for (int spread = 0; spread < 8; ++spread) {
      for (const int largest : {1, 2, 7, 31, 126, 127}) {
        const LaneClass own = lane_class(width, spread, largest);
        uint32_t next = 0;
        for (const LaneRange& range : own.ranges) {
          if (range.freq == 0) continue;
          ASSERT_EQ(range.start, next) << width << ' ' << spread << ' ' << largest;
          next += range.freq;
        }
        ASSERT_EQ(next, kLaneScale) << width << ' ' << spread << ' ' << largest;
        for (int v = -own.core; v <= own.core; ++v) ASSERT_GT(own.ranges[static_cast<size_t>(v - kEscape)].freq, 0);
        ASSERT_EQ((own.core < largest), (own.ranges[0].freq > 0));
      }
    }
  }
}

TEST(LaneTables, EvenAndOddLevelsFillTheirScale) {
  for (int width = 0; width < kLaneWidths; width += 7) {
    for (const int largest : {1, 2, 3, 7, 31, 123, 124, 127}) {
      for (const LaneLevels levels : {LaneLevels::even, LaneLevels::odd}) {
        const LaneClass own = lane_class(width, width % 8, largest, levels);
        uint32_t next = 0;
        for (size_t s = 0; s < own.ranges.size(); ++s) {
          if (own.ranges[s].freq == 0) continue;
          ASSERT_EQ(own.ranges[s].start, next) << width << ' ' << largest;
          ASSERT_EQ(s % 2, static_cast<size_t>(levels));
          next += own.ranges[s].freq;
        }
        ASSERT_EQ(next, kLaneScale) << width << ' ' << largest;
        ASSERT_LE(own.core, std::max(std::min(largest, kTrellisLevel), 1));
      }
    }
  }
}

// Whether weights go in lockstep or one by one, at edges of lanes and beyond one start of the trellis; escapes among them.
TEST(LaneCoder, IsAtTheEntropyOfATrellis) {
  struct Size {
    int64_t rows, cols;
  };
  for (const Size size : {Size{1024, 1024}, {3001, 135}, {300, 71}, {64, 128}, {5, 3}, {1, 1}}) {
    for (const double spread : {1.5, 3.0, 6.0, 17.0, 30.0}) {
      const Values q = gaussian_on_trellis(size.rows, size.cols, spread, kTrellisLevel, 7);
      const auto seen = static_cast<double>(std::set<int>(q.begin(), q.end()).size());
      const Coded coded = round_trip({{q, size.rows, size.cols, 127, true}});
      // Each of the two escapes has a slot of 2^11 at least, of even levels and of odd ones.
      const double slots = 0.001 * static_cast<double>(q.size()) * std::log2(std::exp(1.0)) / 8;
      expect_at_entropy(coded, seen * std::log2(std::exp(1.0)) / 8 + 10 + slots,
                        std::to_string(size.rows) + " rows, spread " + std::to_string(spread));
      EXPECT_LT(coded.entropy_bytes, entropy_of(q) / 8 + 1) << "a trellis says which are even";
    }
  }
}

// Tensors with and without a trellis share chunks and plans.
TEST(LaneCoder, TensorsWithAndWithoutATrellisShareAStream) {
  for (const int64_t rows : {64, 2048}) {
    std::vector<Matrix> all;
    for (uint64_t i = 0; i < 6; ++i)
      all.push_back(i % 3 == 0 ? Matrix{gaussian(rows * 128, 5, 127, i), rows, 128, 127}
                               : Matrix{gaussian_on_trellis(rows, 128, 5, kTrellisLevel, i), rows, 128, 127, true});
    expect_at_entropy(round_trip(all), 100, "six tensors");
  }
}

TEST(LaneCoder, IsAtTheEntropyOfGaussians) {
  for (const GaussianCase& c : kGaussianCases) {
    const Coded coded = round_trip({{gaussian(1 << 20, c.spread, c.level, 7), 1024, 1024, c.level}});
    expect_at_entropy(coded, 0, "spread " + std::to_string(c.spread));
  }
}

// From a gate to a large matrix. The empirical entropy of n weights in A levels lies half to one log2(e) bits a level under
// that of their distribution, which no coder can know; beside it the plan and the state, once a stream.
TEST(LaneCoder, IsAtTheEntropyAtEverySize) {
  constexpr double kFixedBytes = 10;
  for (const int bits : {4, 5, 6, 7, 8}) {
    const int level = largest_level(bits);
    for (const int64_t side : {8, 16, 32, 64, 128, 256, 512, 1024}) {
      const Values q = equal_rows(side, side, level / 12.85, level, static_cast<uint64_t>(100 * bits + side));
      const auto seen = static_cast<double>(std::set<int>(q.begin(), q.end()).size());
      const Coded coded = round_trip({{q, side, side, level}});
      expect_at_entropy(coded, seen * std::log2(std::exp(1.0)) / 8 + kFixedBytes,
                        std::to_string(bits) + " bits, side " + std::to_string(side));
    }
  }
}

// Four matrices of 64 x 128, as a small model's keys: the bar of a thousandth holds without any allowance.
TEST(LaneCoder, IsAtTheEntropyOfSmallMatricesInOneStream) {
  std::vector<Matrix> all;
  for (uint64_t i = 0; i < 4; ++i) all.push_back({equal_rows(64, 128, 31 / 12.85, 31, i), 64, 128, 31});
  expect_at_entropy(round_trip(all), 0, "keys");
}

TEST(LaneCoder, UsesThatRowsHaveOneSumOfSquares) {
  const Coded coded = round_trip({{equal_rows(1024, 128, 31 / 12.85, 31, 5), 1024, 128, 31}});
  EXPECT_LE(coded.bytes, 0.9990 * coded.entropy_bytes);
}

TEST(LaneCoder, UsesTheSpreadOfColumnsAndRows) {
  constexpr int64_t kRows = 512, kCols = 768;
  Rng rng(11);
  std::vector<double> columns(kCols), rows(kRows);
  for (double& c : columns) c = std::exp(0.4 * rng.normal());
  for (double& r : rows) r = std::exp(0.4 * rng.normal());
  Values by_column, by_row;
  for (const double row : rows) {
    for (const double column : columns) {
      by_column.push_back(clipped(2.4 * column * rng.normal(), 31));
      by_row.push_back(clipped(2.4 * row * rng.normal(), 31));
    }
  }
  for (const Values& q : {by_column, by_row}) {
    const Coded coded = round_trip({{q, kRows, kCols, 31}});
    EXPECT_LE(coded.bytes, 0.98 * coded.entropy_bytes);
  }
}

// In one state and in sixteen, with rows and columns beyond whole groups.
TEST(LaneCoder, TakesAnyShape) {
  struct Case {
    int64_t rows, cols;
  };
  for (const Case c : {Case{0, 0},
                       {0, 5},
                       {5, 0},
                       {1, 1},
                       {1, 3},
                       {3, 1},
                       {7, 31},
                       {16, 16},
                       {17, 33},
                       {2, 257},
                       {1000, 1},
                       {613, 717},
                       {1, 400'000},
                       {400'000, 1},
                       {2, 240'000}}) {
    round_trip({{gaussian(c.rows * c.cols, 9, 127, 5), c.rows, c.cols, 127}});
  }
}

TEST(LaneCoder, CutsStreamsAtTensors) {
  std::vector<Matrix> all;
  for (uint64_t i = 0; i < 9; ++i) {
    const int64_t rows = i == 4 ? 0 : 300 + static_cast<int64_t>(100 * i);
    all.push_back({gaussian(rows * 500, 1.0 + static_cast<double>(i), 63, i), rows, 500, 63});
  }
  all.push_back({Values(600'000, 0), 600, 1000, 31});
  all.push_back({gaussian(64, 3, 31, 3), 8, 8, 31});
  round_trip(all);
  std::vector<WeightBlock> blocks;
  std::vector<WeightTarget> targets;
  for (Matrix& m : all) blocks.push_back(m.block()), targets.push_back({m.q.data(), m.rows, m.cols, m.level});
  const std::vector<LaneChunk> chunks = lane_chunks(encode_lanes(blocks), targets, "test: ");
  EXPECT_GE(chunks.size(), 4U);
  EXPECT_FALSE(chunks.back().lockstep);
  EXPECT_TRUE(chunks.front().lockstep);
}

TEST(LaneCoder, HoldsWhatItsTablesDoNotExpect) {
  Rng rng(3);
  Values two(600'000), flat(600'000), rare(600'000), far(600'000);
  for (int8_t& q : two) q = rng.below(2) == 0 ? -1 : 1;
  for (int8_t& q : flat) q = static_cast<int8_t>(static_cast<int>(rng.below(255)) - 127);
  for (int8_t& q : rare) q = rng.below(1000) == 0 ? 1 : 0;
  for (int8_t& q : far) q = rng.below(1000) == 0 ? static_cast<int8_t>(rng.below(2) == 0 ? 127 : -127) : 0;
  for (const Values& q : {two, flat, rare, far, Values(600'000, 127), Values(600'000, -127), Values(600'000, 0)})
    round_trip({{q, 600, 1000, 127}});
}

// Neighbours of 8,192 weights, some with a few far beyond the rest: said for each, plans would take 0.1 % of them.
TEST(WeightSection, SmallTensorsStayAtTheirEntropy) {
  constexpr int64_t kRows = 64, kCols = 128;
  std::vector<Matrix> all;
  std::vector<WeightBlock> blocks;
  for (uint64_t i = 0; i < 20; ++i) {
    all.push_back({equal_rows(kRows, kCols, 31 / 12.85, 31, 30 + i), kRows, kCols, 31});
    for (size_t far = 0; far < i % 4; ++far) all.back().q[700 * far + 5] = static_cast<int8_t>(12 + 3 * far);
  }
  for (const Matrix& m : all) blocks.push_back(m.block());
  std::vector<double> bits;
  const Section section = encode_weight_section(blocks, CodecChoice::rans, &bits);
  ASSERT_EQ(bits.size(), blocks.size());
  double sum = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const double limit = 1.001 * entropy_of(all[i].q);
    EXPECT_TRUE(bits[i] <= limit) << "tensor " << i << ": " << bits[i] << " bits, at most " << limit;
    sum += bits[i];
  }
  EXPECT_NEAR(sum, 8 * static_cast<double>(section.bytes.size()), 1e-3);
  round_trip(all);
}

// A tensor that follows a plan takes columns as coarse as that plan's: others would not fit the model that has learned them.
TEST(LaneFitter, TakesColumnsAsCoarseAsThePlanIs) {
  constexpr int64_t kRows = 64, kCols = 96;
  Rng rng(5);
  Matrix m{{}, kRows, kCols, 31};
  for (int64_t i = 0; i < kRows * kCols; ++i) m.q.push_back(clipped((i % kCols % 3 == 0 ? 5 : 2) * rng.normal(), 31));
  LaneFitter fitter(m.block());
  LanePlan plan = fitter.fit();
  ASSERT_FALSE(plan.columns.empty());
  for (const bool coarse : {false, true}) {
    plan.coarse = coarse;
    EXPECT_EQ(fitter.use(plan).plan.coarse, coarse);
  }
}

// A grid of int5 has no bits to say the largest level of its neighbour's, but may repeat a plan that has it.
TEST(LaneCoder, NeighboursOnOtherGrids) {
  Matrix coarse{equal_rows(64, 128, 31 / 12.85, 15, 7), 64, 128, 15}, fine{equal_rows(64, 128, 31 / 12.85, 31, 8), 64, 128, 31};
  fine.q[77] = 30;
  round_trip({coarse, fine, coarse});
  round_trip({fine, coarse, fine});
}

// One after tensors whose rows are told by what is seen of them, which rows this wide are not.
TEST(LaneCoder, AWideTensorRepeatsNoRowRule) {
  const Matrix narrow{equal_rows(64, 128, 2.4, 31, 5), 64, 128, 31};
  Matrix wide{{}, 1, 5 * 64 * 128, 31};
  for (int i = 0; i < 5; ++i) wide.q.insert(wide.q.end(), narrow.q.begin(), narrow.q.end());
  round_trip({narrow, wide, narrow});
}

// Of many weights, as no kept file holds them: a change of these bytes needs a version of its own. Two wide classes of columns,
// so that there are escapes, rows and columns beyond whole groups, and a small tensor after the large one.
TEST(LaneCoder, WritesTheKeptBytes) {
  Rng rng(21);
  const auto like_gaussian = [&](int width) {
    int sum = 0;
    for (int i = 0; i < 6; ++i) sum += static_cast<int>(rng.below(static_cast<uint64_t>(width))) - (width - 1) / 2;
    return static_cast<int8_t>(std::clamp(sum, -31, 31));
  };
  Matrix large{{}, 1003, 517, 31}, small{{}, 9, 40, 31};
  for (int64_t i = 0; i < large.rows * large.cols; ++i) large.q.push_back(like_gaussian(i % large.cols % 3 == 0 ? 7 : 3));
  for (int64_t i = 0; i < small.rows * small.cols; ++i) small.q.push_back(like_gaussian(5));
  const WeightBlock blocks[] = {large.block(), small.block()};
  EXPECT_EQ(sha256_hex(encode_lanes(blocks)), "4a0f68f9b7e9f079669d59606bcd6cad9f98bfe2c18460cfa72af6536b322509");
  round_trip({large, small});
}

// Long streams: lanes where they are as good, what learns where rows differ widely or levels are missing.
TEST(WeightSection, TakesWhatSuitsTheWeights) {
  constexpr int64_t kRows = 1100, kCols = 1000;
  Rng rng(4);
  Matrix even{gaussian(kRows * kCols, 2.4, 31, 1), kRows, kCols, 31}, uneven{{}, kRows, kCols, 31}, two{{}, kRows, kCols, 31};
  for (int64_t i = 0; i < kRows; ++i) {
    const double spread = 4 * std::exp(rng.normal());
    for (int64_t j = 0; j < kCols; ++j) uneven.q.push_back(clipped(spread * rng.normal(), 31));
  }
  for (int64_t i = 0; i < kRows * kCols; ++i) two.q.push_back(rng.below(2) == 0 ? -3 : 3);
  for (const auto& [matrix, codec] :
       {std::pair{&even, Codec::lanes}, std::pair{&uneven, Codec::shaped}, std::pair{&two, Codec::shaped}}) {
    const WeightBlock block = matrix->block();
    EXPECT_EQ(encode_weight_section({&block, 1}, CodecChoice::rans).codec, codec);
  }
}

TEST(LaneCoder, EveryByteMatters) {
  for (const int64_t rows : {64, 6200}) {
    const Matrix m{gaussian(rows * 64, 2.4, 31, 9), rows, 64, 31};
    const WeightBlock block = m.block();
    const std::string bytes = encode_lanes({&block, 1});
    Values back(m.q.size());
    const WeightTarget target{back.data(), rows, 64, 31};
    for (size_t i = 0; i < bytes.size(); i += bytes.size() / 97) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 0x11);
      try {
        decode_lanes(changed, {&target, 1}, "test: ");
        EXPECT_NE(back, m.q) << i;
      } catch (const InputError&) {}
    }
    for (const size_t size : {size_t{0}, size_t{2}, size_t{9}, bytes.size() - 1, bytes.size() - 2, bytes.size() / 2}) {
      EXPECT_THROW(decode_lanes(bytes.substr(0, size), {&target, 1}, "test: "), InputError) << size;
    }
    EXPECT_THROW(decode_lanes(bytes + "xx", {&target, 1}, "test: "), InputError);
  }
}

// Products without carry against the definition, a bit at a time.
TEST(Checksum, IsTheSameHoweverItIsMade) {
  const auto defined = [](std::string_view bytes) {
    uint32_t crc = ~0U;
    for (const char c : bytes) {
      crc ^= static_cast<uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xEDB88320U : crc >> 1;
    }
    return ~crc;
  };
  EXPECT_EQ(artifact_checksum("123456789"), 0xCBF43926U);
  Rng rng(8);
  for (size_t size = 0; size < 700; size += 1 + size / 16) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(rng.below(256));
    EXPECT_EQ(artifact_checksum(bytes), defined(bytes)) << size;
  }
}

}  // namespace
}  // namespace fairway
