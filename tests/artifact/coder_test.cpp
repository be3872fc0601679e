// Our weight and value coders: exact, close to the entropy, deterministic.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "artifact/byte_coder.h"
#include "artifact/gaussian_weights.h"
#include "artifact/general_codecs.h"
#include "artifact/shaped_models.h"
#include "artifact/weight_coder.h"
#include "base/error.h"
#include "base/rng.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

struct Coded {
  double bytes = 0, entropy_bytes = 0;
};
// Encodes, decodes into other memory, compares.
Coded round_trip(Values& q, int64_t rows, int64_t cols, int level) {
  const WeightBlock block{q.data(), rows, cols, level};
  const std::string bytes = encode_weights({&block, 1});
  EXPECT_EQ(bytes, encode_weights({&block, 1}));
  Values back(q.size(), 99);
  const WeightTarget target{back.data(), rows, cols, level};
  decode_weights(bytes, {&target, 1}, "test: ");
  EXPECT_EQ(back, q);
  return {static_cast<double>(bytes.size()), entropy_of(q) / 8};
}

// The header and the coder's state: what a stream costs however short it is.
constexpr double kFixedBytes = 6;

void expect_at_entropy(const Coded& coded, const std::string& what) {
  EXPECT_TRUE(coded.bytes <= 1.001 * coded.entropy_bytes + kFixedBytes)
      << what << ": " << coded.bytes << " bytes, entropy " << coded.entropy_bytes;
}

TEST(WeightCoder, IsAtTheEntropyOfGaussians) {
  for (const GaussianCase& c : kGaussianCases) {
    Values q = gaussian(1 << 20, c.spread, c.level, 7);
    expect_at_entropy(round_trip(q, 1024, 1024, c.level), "spread " + std::to_string(c.spread));
  }
}

// Weights of a row are Gaussian with a spread of its own, as trained ones are; the size runs from a gate to a large matrix. The
// empirical entropy of n weights in A levels lies half to one log2(e) bits a level under that of their distribution, which no
// coder can know: that much is allowed beside a thousandth.
TEST(WeightCoder, IsAtTheEntropyAtEverySize) {
  for (const int bits : {4, 5, 6, 7, 8}) {
    const int level = largest_level(bits);
    for (const int64_t side : {8, 16, 32, 64, 128, 256, 512, 1024}) {
      Rng rng(static_cast<uint64_t>(100 * bits + side));
      Values q;
      for (int64_t i = 0; i < side; ++i) {
        const double spread = level / 12.85 * std::exp(0.03 * rng.normal());
        for (int64_t j = 0; j < side; ++j)
          q.push_back(static_cast<int8_t>(std::clamp(static_cast<int>(std::lround(spread * rng.normal())), -level, level)));
      }
      const auto seen = static_cast<double>(std::set<int>(q.begin(), q.end()).size());
      const Coded coded = round_trip(q, side, side, level);
      EXPECT_TRUE(coded.bytes <= 1.001 * coded.entropy_bytes + seen * std::log2(std::exp(1.0)) / 8 + kFixedBytes)
          << bits << " bits, side " << side << ": " << coded.bytes << " bytes, entropy " << coded.entropy_bytes << ", levels "
          << seen;
    }
  }
}

TEST(WeightCoder, HoldsOnEdgeHistograms) {
  for (const int symbol : {0, 1, -31, 31}) {
    Values one(300'000, static_cast<int8_t>(symbol));
    const Coded coded = round_trip(one, 300, 1000, 31);
    EXPECT_LE(coded.bytes, symbol == 0 ? kFixedBytes : 3000) << symbol;  // 0 bits a weight; the alphabet is symmetric
  }
  Rng rng(3);
  Values two(200'000), flat(1 << 20), rare(1 << 20);
  for (int8_t& q : two) q = rng.below(2) == 0 ? -1 : 1;
  for (int8_t& q : flat) q = static_cast<int8_t>(static_cast<int>(rng.below(255)) - 127);
  for (int8_t& q : rare) q = rng.below(1000) == 0 ? 1 : 0;
  EXPECT_LE(round_trip(two, 200, 1000, 1).bytes, 1.001 * 25'000);
  const Coded even = round_trip(flat, 1024, 1024, 127);
  EXPECT_LE(even.bytes, 1.002 * even.entropy_bytes);  // 255 counts are learned to within their noise
  const Coded seldom = round_trip(rare, 1024, 1024, 31);
  EXPECT_LE(seldom.bytes, 1.01 * seldom.entropy_bytes + kFixedBytes);
}

TEST(WeightCoder, TakesAnyShape) {
  struct Case {
    int64_t rows, cols;
  };
  for (const Case c : {Case{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 3}, {3, 1}, {7, 31}, {7, 32}, {7, 33}, {2, 257}, {1000, 1}}) {
    Values q = gaussian(c.rows * c.cols, 9, 127, 5);
    round_trip(q, c.rows, c.cols, 127);
  }
}

// A column's spread shows in the rows above: order 0 cannot use it.
TEST(WeightCoder, UsesTheSpreadOfColumnsAndRows) {
  constexpr int64_t kRows = 512, kCols = 768;
  Rng rng(11);
  std::vector<double> columns(kCols), rows(kRows);
  for (double& c : columns) c = std::exp(0.4 * rng.normal());
  for (double& r : rows) r = std::exp(0.4 * rng.normal());
  Values by_column(kRows * kCols), by_row(kRows * kCols);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kCols; ++j) {
      const auto place = static_cast<size_t>(i * kCols + j);
      by_column[place] =
          static_cast<int8_t>(std::clamp(std::lround(2.4 * columns[static_cast<size_t>(j)] * rng.normal()), -31L, 31L));
      by_row[place] =
          static_cast<int8_t>(std::clamp(std::lround(2.4 * rows[static_cast<size_t>(i)] * rng.normal()), -31L, 31L));
    }
  }
  for (Values* q : {&by_column, &by_row}) {
    const Coded coded = round_trip(*q, kRows, kCols, 31);
    EXPECT_LE(coded.bytes, 0.98 * coded.entropy_bytes);
  }
}

// Rows that repeat a pattern with little noise, as embeddings of tokens that never occur do.
TEST(WeightCoder, UsesWhatRowsShare) {
  constexpr int64_t kRows = 256, kCols = 128;
  const Values pattern = gaussian(kCols, 6, 127, 1), noise = gaussian(kRows * kCols, 0.6, 127, 2);
  Values q(kRows * kCols);
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<int8_t>(pattern[i % kCols] + noise[i]);
  const Coded coded = round_trip(q, kRows, kCols, 127);
  EXPECT_LE(coded.bytes, 0.5 * coded.entropy_bytes);
}

TEST(WeightCoder, ExtremesThatCannotBeCentred) {
  Values q(64 * 64);
  for (size_t i = 0; i < q.size(); ++i) q[i] = i / 64 % 32 < 16 ? 127 : -127;
  round_trip(q, 64, 64, 127);
}

// Columns have means of their own, so that differences from them are coded. One in some columns of the second tensor lies about
// 128 below their mean, and −128 has no symbol, though it would be cheapest to go on as with the first.
TEST(WeightCoder, DoesNotGoOnWithDifferencesThatWrap) {
  constexpr int64_t kRows = 300, kCols = 64;
  Rng rng(4);
  const auto made = [&](bool wraps) {
    Values q;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kCols; ++j) {
        const int64_t mean = 110 - 220 * j / kCols, far = mean > 0 ? 127 : -127;
        const int64_t near = mean + static_cast<int64_t>(rng.below(7)) - 3;
        q.push_back(static_cast<int8_t>(i == 0 ? far : wraps && mean > 10 && i == 220 + j ? mean - 130 + j % 5 : near));
      }
    }
    return q;
  };
  const Values first = made(false), second = made(true);
  const WeightBlock blocks[] = {{first.data(), kRows, kCols, 127}, {second.data(), kRows, kCols, 127}};
  Values back[] = {Values(first.size()), Values(second.size())};
  const WeightTarget targets[] = {{back[0].data(), kRows, kCols, 127}, {back[1].data(), kRows, kCols, 127}};
  decode_weights(encode_weights(blocks), targets, "test: ");
  EXPECT_EQ(back[0], first);
  EXPECT_EQ(back[1], second);
}

TEST(WeightCoder, EveryByteMatters) {
  Values q = gaussian(4096, 2.4, 31, 9);
  const WeightBlock block{q.data(), 64, 64, 31};
  const std::string bytes = encode_weights({&block, 1});
  Values back(q.size());
  const WeightTarget target{back.data(), 64, 64, 31};
  for (size_t i = 0; i < bytes.size(); i += 7) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    try {
      decode_weights(changed, {&target, 1}, "test: ");
      EXPECT_NE(back, q) << i;
    } catch (const InputError&) {}
  }
  for (const size_t size : {size_t{0}, size_t{2}, size_t{9}, bytes.size() - 1, bytes.size() - 2}) {
    EXPECT_THROW(decode_weights(bytes.substr(0, size), {&target, 1}, "test: "), InputError) << size;
  }
  EXPECT_THROW(decode_weights(bytes + "xx", {&target, 1}, "test: "), InputError);
}

// Decoders must find the shares of the files that exist: those at the end of 52 halvings of [0, 1], whatever was leapt over.
TEST(WeightCoder, SharesAreThoseOfPlainBisection) {
  const auto bins_of = [](double h, Shares& shares) {
    double h8 = h * h;
    h8 *= h8, h8 *= h8;
    double point = h, step = 1, sum = 0, moment = 0;
    shares.fill(0);
    for (size_t j = 0; j < 8 * shares.size() - 4 && point > 1e-60; ++j) {
      shares[(j + 4) / 8] += point;
      step *= h8, point *= step;
    }
    for (size_t v = 0; v < shares.size(); ++v) sum += 2 * shares[v], moment += 2 * static_cast<double>(v) * shares[v];
    for (double& share : shares) share /= sum;
    shares[0] *= 2;
    return moment / sum;
  };
  for (int scale = 0; scale < 1 << WeightShape::kScaleBits; ++scale) {
    double mean = 1, low = 0, high = 1;
    for (int i = 0; i < scale % 32; ++i) mean *= 1.0218971486541166;
    mean = std::ldexp(mean, scale / 32 - 9);
    Shares wanted;
    for (int i = 0; i < 52; ++i) {
      const double h = (low + high) / 2;
      (bins_of(h, wanted) < mean ? low : high) = h;
    }
    ASSERT_EQ(shares_of(scale, 0), wanted) << scale;
  }
}

TEST(ValueCoder, RoundTripsPlanes) {
  Rng rng(2);
  for (const size_t width : {size_t{1}, size_t{2}, size_t{4}}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{33}, size_t{5000}}) {
      std::string values(width * count, '\0');
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<char>(i % width == width - 1 ? 0x30 + rng.below(3) : rng.below(256));
      const std::string coded = encode_values(values, width);
      EXPECT_EQ(decode_values(coded, width, values.size(), "test: "), values);
      if (width == 2 && count == 5000) {
        EXPECT_LE(coded.size(), 5000 + 1100);
      }
    }
  }
}

TEST(GeneralCodecs, RoundTripAndShuffle) {
  EXPECT_EQ(byte_shuffle("abcde"), "acebd");
  Rng rng(4);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{2}, size_t{1001}}) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(rng.below(7));
    EXPECT_EQ(byte_unshuffle(byte_shuffle(bytes)), bytes);
    EXPECT_EQ(brotli_decode(brotli_encode(bytes), size, "test: "), bytes);
    EXPECT_EQ(lzma_decode(lzma_encode(bytes), size, "test: "), bytes);
  }
}

}  // namespace
}  // namespace fairway
