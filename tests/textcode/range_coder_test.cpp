// Symbols come back whatever their shares; the stream is as long as they are surprising.
#include "textcode/range_coder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "textcode/edit_code.h"

namespace fairway::textcode {
namespace {

struct Symbol {
  Share share;
  uint64_t total;
};

std::vector<Symbol> symbols(uint64_t seed, int count, uint64_t most) {
  Rng rng(seed);
  std::vector<Symbol> out;
  for (int i = 0; i < count; ++i) {
    const uint64_t total = 2 + rng.below(most - 2), start = rng.below(total);
    out.push_back({{start, 1 + rng.below(total - start)}, total});
  }
  return out;
}

TEST(RangeCoder, GivesSymbolsBack) {
  for (const uint64_t most : {uint64_t{3}, uint64_t{1000}, uint64_t{1} << 30, kMostTotal}) {
    const auto all = symbols(most, 20000, most);
    RangeEncoder out;
    double bits = 0;
    for (const Symbol& s : all) {
      out.put(s.share, s.total);
      bits += std::log2(static_cast<double>(s.total) / static_cast<double>(s.share.freq));
    }
    const std::string code = out.finish();
    EXPECT_LE(8 * code.size(), bits * 1.0001 + 24) << most;
    RangeDecoder in(code);
    for (const Symbol& s : all) {
      const uint64_t slot = in.slot(s.total);
      ASSERT_TRUE(slot >= s.share.start && slot < s.share.start + s.share.freq) << most;
      in.take(s.share, s.total);
    }
  }
}

TEST(RangeCoder, CarriesThroughLongRuns) {
  RangeEncoder out;
  for (int i = 0; i < 300; ++i) out.put({255, 1}, 256);  // bytes of 255, or a carry through all of them
  out.put({999, 1}, 1000);
  out.put({3, 1}, 4);
  const std::string code = out.finish();
  RangeDecoder in(code);
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(in.slot(256), 255U);
    in.take({255, 1}, 256);
  }
  EXPECT_EQ(in.slot(1000), 999U);
  in.take({999, 1}, 1000);
  EXPECT_EQ(in.slot(4), 3U);
}

TEST(RangeCoder, EmptyStreamHasNoBytes) { EXPECT_EQ(RangeEncoder().finish(), ""); }

TEST(NumberModel, GivesNumbersBack) {
  Rng rng(3);
  std::vector<uint64_t> all{0, 1, 2, 3, 15, 16, 17, (uint64_t{1} << 48) - 1};
  for (int i = 0; i < 2000; ++i) all.push_back(rng.below(uint64_t{1} << (1 + rng.below(47))));
  RangeEncoder out;
  NumberModel writer;
  for (const uint64_t n : all) writer.put(out, n);
  const std::string code = out.finish();
  RangeDecoder in(code);
  NumberModel reader;
  for (const uint64_t n : all) ASSERT_EQ(reader.get(in), n);
}

}  // namespace
}  // namespace fairway::textcode
