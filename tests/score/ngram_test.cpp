// Hashes of the spec's example (scoring spec §11.5), the tables' limits, and what the token expert proposes.
#include <gtest/gtest.h>

#include "score/ngram_experts.h"

namespace fairway {
namespace {

const std::vector<uint16_t> kNewestFirst{3, 41, 90, 8191, 8, 300, 12, 7, 61, 2, 33, 900, 4, 1023, 17, 5};

TEST(NgramHash, PublishedHashesOfTheSpecsExample) {
  const auto hash = [](int64_t order) { return context_hash(NgramHash::published, kNewestFirst, order); };
  EXPECT_EQ(hash(8), 607675194U);
  EXPECT_EQ(hash(10), 633628193U);
  EXPECT_EQ(hash(16), 1407471255U);
  EXPECT_EQ(NgramTable::slot(hash(8), 26), 24394690U);
  EXPECT_EQ(pair_hash(NgramHash::published, hash(8), 99, 8), 607677065782321U);
}

TEST(NgramHash, TheMixerUsesAllBits) {
  uint64_t ones = 0, zeros = 0;
  std::vector<uint16_t> tokens(8, 0);
  for (uint16_t token = 0; token < 64; ++token) {
    tokens[7] = token;
    const uint64_t hash = context_hash(NgramHash::mixed, tokens, 8);
    ones |= hash;
    zeros |= ~hash;
  }
  EXPECT_EQ(ones, ~uint64_t{0});
  EXPECT_EQ(zeros, ~uint64_t{0});
}

TEST(NgramTable, CountsAndPrefersTheMostFrequentToken) {
  NgramTable table(6);
  EXPECT_EQ(table.find(5).count, 0U);
  table.add(5, 100, 7);
  table.add(5, 101, 8);
  table.add(5, 101, 8);
  EXPECT_EQ(table.find(5).token, 8);
  EXPECT_EQ(table.find(5).best, 2U);
  EXPECT_EQ(table.find(5).count, 3U);
}

TEST(NgramTable, CountersSaturate) {
  NgramTable table(4);
  for (int i = 0; i < 70000; ++i) table.add(5, 100, 7);
  EXPECT_EQ(table.find(5).best, 65535U);
  EXPECT_EQ(table.find(5).count, 70000U);
}

TEST(NgramTable, AFullTableDropsInsertionsAndKeepsWhatItHas) {
  NgramTable table(4);
  for (uint64_t key = 0; key < 100; ++key) table.add(key, key + 1000, static_cast<uint16_t>(key));
  int found = 0;
  for (uint64_t key = 0; key < 100; ++key) found += table.find(key).count > 0 ? 1 : 0;
  EXPECT_EQ(found, 16);
}

class TokenExpertTest : public testing::Test {
 protected:
  // Absorbs target by target through a ledger; returns the hint before the last one.
  Tilt hint_after(const std::vector<uint16_t>& stream) {
    ScoreLedger ledger(stream);
    Tilt last;
    for (int64_t target = 1; target <= ledger.targets(); ++target) {
      last = expert_.hint();
      const TargetScore score{};
      ledger.score(target, {&score, 1});
      expert_.absorb(ledger.scored(target, target + 1));
    }
    return last;
  }
  TokenExpert expert_{NgramRecipe{.table_bits = 10}, NgramHash::mixed};
};

TEST_F(TokenExpertTest, ProposesWhatFollowedTheSameTokensBefore) {
  std::vector<uint16_t> stream{1};
  for (int round = 0; round < 3; ++round)
    for (uint16_t token = 20; token < 40; ++token) stream.push_back(token);
  const Tilt hint = hint_after(stream);
  EXPECT_EQ(hint.token, 39);
  EXPECT_DOUBLE_EQ(hint.beta, 1.0);  // sure
}

TEST_F(TokenExpertTest, IsSilentOnWhatItHasNotSeenTwice) {
  std::vector<uint16_t> stream{1};
  for (int round = 0; round < 2; ++round)
    for (uint16_t token = 20; token < 40; ++token) stream.push_back(token);
  EXPECT_EQ(hint_after(stream).token, -1);
  expert_.clear();
  EXPECT_EQ(hint_after({1, 5, 6}).token, -1);
}

}  // namespace
}  // namespace fairway
