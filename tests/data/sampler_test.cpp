#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/samplers.h"

namespace fairway::data {
namespace {

Corpus corpus(std::vector<uint64_t> tokens) {
  return {std::move(tokens), [](size_t) { return uint64_t{3}; }, 1};
}

SamplerOptions options(SamplerKind kind, int64_t length, int64_t rows, int world) {
  SamplerOptions result;
  result.kind = kind;
  result.length = length;
  result.rows = rows;
  result.world = world;
  return result;
}

TEST(CoprimeSampler, VisitsEveryBlockOncePerPass) {
  for (const uint64_t tokens :
       {uint64_t{17}, uint64_t{33}, uint64_t{100}, uint64_t{1000}, uint64_t{4097}, uint64_t{16 * 30 + 5}}) {
    CoprimeSampler sampler(options(SamplerKind::coprime, 16, 1, 1), corpus({tokens}));
    std::vector<Window> out(1);
    for (int pass = 0; pass < 4; ++pass) {
      sampler.next(out);
      const CoprimeSampler::Cursor cursor = sampler.cursor(0);
      ASSERT_EQ(cursor.next, 1U);
      ASSERT_EQ(std::gcd(cursor.stride, cursor.blocks), 1U);
      ASSERT_LE(cursor.phase, 15U);
      ASSERT_EQ(cursor.blocks, (tokens - 1 - cursor.phase) / 16);
      std::set<uint64_t> seen = {out[0].position};
      for (uint64_t i = 1; i < cursor.blocks; ++i) {
        sampler.next(out);
        seen.insert(out[0].position);
        ASSERT_LT(out[0].position + 16, tokens);
      }
      ASSERT_EQ(seen.size(), cursor.blocks);
      for (const uint64_t position : seen) ASSERT_EQ((position - cursor.phase) % 16, 0U);
    }
  }
}

TEST(CoprimeSampler, MixesMoreShardsAsThePlanSays) {
  CoprimeSampler sampler(options(SamplerKind::coprime, 2048, 48, 8), corpus(std::vector<uint64_t>(80, 100'000'000)));
  std::vector<Window> out(384);
  std::map<int64_t, int64_t> wanted = {{0, 8}, {300, 17}, {900, 36}, {1500, 55}, {1800, 64}, {2000, 64}};
  for (int64_t plan = 0; plan <= 2000; ++plan) {
    const auto expected = wanted.find(plan);
    const int64_t mix = sampler.mix();
    sampler.next(out);
    if (expected == wanted.end()) continue;
    EXPECT_EQ(mix, expected->second) << plan;
    std::set<uint32_t> shards;
    for (const Window& window : out) shards.insert(window.shard);
    EXPECT_EQ(static_cast<int64_t>(shards.size()), mix) << plan;
  }
}

TEST(CoprimeSampler, FullShardsHaveTheSpecsBlocks) {
  CoprimeSampler sampler(options(SamplerKind::coprime, 2048, 48, 8), corpus({100'000'000}));
  std::vector<Window> out(384);
  sampler.next(out);
  EXPECT_NEAR(static_cast<double>(sampler.cursor(0).blocks), 48827.5, 0.6);
  std::set<uint64_t> places;
  for (const Window& window : out) places.insert(window.position);
  EXPECT_EQ(places.size(), 384U);
}

// One shard is drawn first with probability w^alpha / sum; with rows * world = 1 a plan is exactly that first draw.
TEST(CoprimeSampler, DrawsShardsByTheirWeights) {
  SamplerOptions one = options(SamplerKind::coprime, 16, 1, 1);
  for (const double alpha : {0.9, 0.5}) {
    one.alpha_first = one.alpha_last = alpha;
    const std::vector<uint64_t> blocks = {100'000'000, 400'000'000, 1'600'000'000, 25'000'000};  // so many that none wears down
    std::vector<uint64_t> tokens;
    double sum = 0;
    for (const uint64_t b : blocks) tokens.push_back(b * 16 + 1), sum += std::pow(static_cast<double>(b), alpha);
    CoprimeSampler sampler(one, corpus(tokens));
    std::vector<Window> out(1);
    std::vector<double> counts(blocks.size());
    constexpr int kDraws = 40000;
    for (int i = 0; i < kDraws; ++i) {
      sampler.next(out);
      ++counts[out[0].shard];
    }
    double chi = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const double expected = kDraws * std::pow(static_cast<double>(blocks[i]), alpha) / sum;
      chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi, 16.3) << alpha;  // three degrees of freedom, p = 0.001
  }
}

TEST(CoprimeSampler, CountsFollowTheWeightsOfTheChosen) {
  // Two shards, both always chosen: 1 each, the other 62 in the ratio of their weights.
  SamplerOptions both = options(SamplerKind::coprime, 16, 64, 1);
  both.alpha_first = both.alpha_last = 0.5;
  CoprimeSampler sampler(both, corpus({16 * 90'000'000ULL + 1, 16 * 810'000'000ULL + 1}));
  std::vector<Window> out(64);
  double small = 0;
  constexpr int kPlans = 2000;
  for (int i = 0; i < kPlans; ++i) {
    sampler.next(out);
    for (const Window& window : out) small += window.shard == 0;
  }
  const double expected = 1 + 62 * 0.25, deviation = std::sqrt(62 * 0.25 * 0.75 / kPlans);
  EXPECT_NEAR(small / kPlans, expected, 4 * deviation);
}

TEST(CoprimeSampler, InterleavesSoThatRanksShareShards) {
  CoprimeSampler sampler(options(SamplerKind::coprime, 16, 12, 4), corpus({16001, 16001, 16001, 16001}));
  std::vector<Window> out(48);
  sampler.next(out);
  for (size_t row = 0; row < 2; ++row) {  // the first rounds pop one window from each of the four buckets
    std::set<uint32_t> shards;
    for (size_t rank = 0; rank < 4; ++rank) shards.insert(out[rank * 12 + row].shard);
    EXPECT_EQ(shards.size(), 4U);
  }
}

TEST(CoprimeSampler, SkipsShardsWithoutAWindow) {
  CoprimeSampler sampler(options(SamplerKind::coprime, 16, 4, 1), corpus({16, 17, 0, 400}));
  std::vector<Window> out(4);
  for (int i = 0; i < 50; ++i) {
    sampler.next(out);
    for (const Window& window : out) EXPECT_TRUE(window.shard == 1 || window.shard == 3);
  }
}

TEST(SequentialSampler, WalksTheStreamAndWraps) {
  SequentialSampler sampler(options(SamplerKind::sequential, 4, 2, 2), corpus({30, 0, 25}));
  std::vector<Window> out(4);
  uint64_t at = 0;
  for (int i = 0; i < 20; ++i) {
    sampler.next(out);
    const std::vector<uint64_t> offsets = {0, 4, 9, 13};  // rank 1 begins after B * T + 1 = 9 tokens
    for (size_t w = 0; w < 4; ++w) {
      const uint64_t index = (at + offsets[w]) % 55;
      EXPECT_EQ(out[w], (index < 30 ? Window{0, index} : Window{2, index - 30})) << i;
    }
    at += 18;
  }
}

TEST(ShuffledSampler, VisitsEveryBlockOncePerPassAtAnyWorld) {
  for (const int world : {1, 2, 3, 8}) {
    for (const std::vector<uint64_t>& tokens :
         {std::vector<uint64_t>{2000, 1500, 900}, {5000}, {400, 500, 600, 700, 800, 900, 1000, 1100, 1200}}) {
      ShuffledSampler sampler(options(SamplerKind::shuffled, 16, 1, world), corpus(tokens));
      std::vector<Window> out(static_cast<size_t>(world));
      std::map<std::pair<uint32_t, uint64_t>, int> seen;
      std::vector<std::set<uint32_t>> shards_of(static_cast<size_t>(world));
      const uint64_t smallest = *std::min_element(tokens.begin(), tokens.end()) / 16 / 8 - 1;
      for (uint64_t i = 0; i < smallest; ++i) {  // less than a pass of any rank: nothing may repeat
        sampler.next(out);
        for (size_t rank = 0; rank < out.size(); ++rank) {
          ASSERT_LT(out[rank].position + 16, tokens[out[rank].shard]);
          ++seen[{out[rank].shard, out[rank].position}];
          shards_of[rank].insert(out[rank].shard);
        }
      }
      for (const auto& [window, times] : seen) EXPECT_EQ(times, 1);
      if (tokens.size() < static_cast<size_t>(world)) continue;
      for (size_t rank = 0; rank < out.size(); ++rank)
        for (const uint32_t shard : shards_of[rank]) EXPECT_EQ(shard % static_cast<uint32_t>(world), rank);
    }
  }
}

TEST(ShuffledSampler, OnePassIsAllBlocks) {
  ShuffledSampler sampler(options(SamplerKind::shuffled, 16, 1, 1), corpus({1001, 333}));
  std::vector<Window> out(1);
  for (int pass = 0; pass < 3; ++pass) {
    std::map<uint32_t, std::set<uint64_t>> seen;
    std::map<uint32_t, std::set<uint64_t>> phases;
    size_t drawn = 0;
    // A pass has (n - 1 - phase) div T blocks per shard, known once a window of each was seen; 82 or 81 or 80 in all.
    while (drawn < 80) {
      sampler.next(out);
      ++drawn;
      ASSERT_TRUE(seen[out[0].shard].insert(out[0].position).second);
      phases[out[0].shard].insert(out[0].position % 16);
    }
    for (const auto& [shard, phase] : phases) ASSERT_EQ(phase.size(), 1U);
    const size_t blocks = (1000 - *phases[0].begin()) / 16 + (332 - *phases[1].begin()) / 16;
    for (; drawn < blocks; ++drawn) {
      sampler.next(out);
      ASSERT_TRUE(seen[out[0].shard].insert(out[0].position).second);
    }
  }
}

TEST(ShuffledSampler, PicksShardsByWhatRemains) {
  ShuffledSampler sampler(options(SamplerKind::shuffled, 16, 1, 1), corpus({16 * 30'000'000ULL + 1, 16 * 10'000'000ULL + 1}));
  std::vector<Window> out(1);
  int large = 0;
  for (int i = 0; i < 20000; ++i) {
    sampler.next(out);
    large += out[0].shard == 0;
  }
  EXPECT_NEAR(large / 20000.0, 0.75, 4 * std::sqrt(0.75 * 0.25 / 20000));
}

TEST(Permute, IsABijectionThatMixes) {
  for (const uint64_t size : {1, 2, 3, 4, 5, 16, 17, 1000, 4096, 48828}) {
    std::vector<bool> seen(size);
    uint64_t fixed = 0;
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t image = permute(i, size, 99);
      ASSERT_LT(image, size);
      ASSERT_FALSE(seen[image]);
      seen[image] = true;
      fixed += image == i;
    }
    EXPECT_TRUE(size < 1000 || fixed < 10U) << fixed;
  }
  EXPECT_NE(permute(5, 1000, 1), permute(5, 1000, 2));
}

TEST(DocpackSampler, EntersShardsAtADocumentAndLeavesWhenShort) {
  DocpackSampler sampler(options(SamplerKind::docpack, 10, 1, 3), corpus({100, 20, 70}));
  std::vector<Window> out(3);
  std::vector<std::pair<uint32_t, uint64_t>> starts;  // 33 tokens a step; shards begin at their BOS, place 3
  for (int i = 0; i < 5; ++i) {
    sampler.next(out);
    starts.emplace_back(out[0].shard, out[0].position);
    for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(out[rank], (Window{out[0].shard, out[0].position + 11 * rank}));
  }
  EXPECT_EQ(starts, (std::vector<std::pair<uint32_t, uint64_t>>{{0, 3}, {0, 36}, {2, 3}, {2, 36}, {0, 3}}));
}

TEST(DocpackSampler, SaysWhenNoShardIsLongEnough) {
  DocpackSampler sampler(options(SamplerKind::docpack, 10, 1, 3), corpus({34, 35}));  // long enough, but not after the BOS
  std::vector<Window> out(3);
  EXPECT_THROW(sampler.next(out), InputError);
  EXPECT_THROW(DocpackSampler(options(SamplerKind::docpack, 10, 1, 3), corpus({32})), InputError);
}

TEST(Samplers, NamesRoundTrip) {
  for (const auto kind : {SamplerKind::sequential, SamplerKind::coprime, SamplerKind::shuffled, SamplerKind::docpack})
    EXPECT_EQ(sampler_kind(name_of(kind)), kind);
  EXPECT_THROW(sampler_kind("random"), InputError);
}

TEST(Samplers, SameSeedSamePlanOtherSeedOtherPlan) {
  for (const auto kind : {SamplerKind::coprime, SamplerKind::shuffled}) {
    SamplerOptions first = options(kind, 16, 8, 2);
    const auto plan_of = [&](uint64_t seed) {
      first.seed = seed;
      auto sampler = make_sampler(first, corpus({5000, 6000, 7000}));
      std::vector<Window> out(16);
      for (int i = 0; i < 3; ++i) sampler->next(out);
      return out;
    };
    EXPECT_EQ(plan_of(1), plan_of(1));
    EXPECT_NE(plan_of(1), plan_of(2));
  }
}

}  // namespace
}  // namespace fairway::data
