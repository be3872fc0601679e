// Hashes of the specs' examples (scoring spec §11.5, record spec §11), the tables' limits, and what the token expert proposes:
// the definition that tilt_hints_test.cpp holds the hints of a stream to.
#include <gtest/gtest.h>

#include <cmath>

#include "score/ngram_experts.h"
#include "score/tilt_hints.h"

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

TEST(NgramHash, HashesOfASingleContextOldestFirst) {
  const uint64_t key = context_hash(NgramHash::oldest_first, kNewestFirst, 15);
  EXPECT_EQ(key, 7355551410U);
  EXPECT_EQ(pair_hash(NgramHash::oldest_first, key, 99, 15), 7355573350957037U);
  EXPECT_EQ(NgramTable::slot(key, 27), 8334490U);
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

TEST(NgramTable, ProbesTheWholeTableWhereAsked) {
  NgramTable few(6), all(6, NgramTable::Probing::whole_table);
  std::vector<uint64_t> keys;  // that all begin at one slot
  for (uint64_t key = 0; keys.size() < 70; ++key)
    if (NgramTable::slot(key, 6) == 3) keys.push_back(key);
  const auto found = [&](NgramTable& table) {
    int count = 0;
    for (const uint64_t key : keys) table.add(key, key, 7);
    for (const uint64_t key : keys) count += table.find(key).count > 0 ? 1 : 0;
    return count;
  };
  EXPECT_EQ(found(few), 16);
  EXPECT_EQ(found(all), 64);
}

// Absorbs target by target through a ledger; returns the hint before each.
std::vector<Hint> hints_along(TokenExpert& expert, const std::vector<uint16_t>& stream) {
  ScoreLedger ledger(stream);
  std::vector<Hint> hints;
  for (int64_t target = 1; target <= ledger.targets(); ++target) {
    hints.push_back(expert.hint());
    const TargetScore score{};
    ledger.score(target, {&score, 1});
    expert.absorb(ledger.scored(target, target + 1));
  }
  return hints;
}

class TokenExpertTest : public testing::Test {
 protected:
  Hint hint_after(const std::vector<uint16_t>& stream) { return hints_along(expert_, stream).back(); }
  TokenExpert expert_{ngram_rules({}), 10, NgramTable::Probing::sixteen};
};

TEST(SingleContext, HintsWhereTheSpecsExampleHasThem) {
  const NgramRecipe recipe{.beta = 2.625, .order = 15, .threshold = 0.8};
  TokenExpert expert(ngram_rules(recipe), 10, NgramTable::Probing::whole_table);
  std::vector<uint16_t> stream{1};
  const auto tokens = [&](uint16_t count) {
    for (uint16_t i = 0; i < count; ++i) stream.push_back(static_cast<uint16_t>(10 + i));
  };
  tokens(16), tokens(16), tokens(15);
  stream.push_back(77);
  tokens(15);
  stream.insert(stream.end(), {25, 25});
  const std::vector<Hint> hints = hints_along(expert, stream);
  ASSERT_EQ(hints.size(), 65U);
  for (size_t i = 0; i < hints.size(); ++i) {
    const bool repeats = i >= 31 && i <= 47;
    const int32_t expected = i == 47 ? 25 : i == 64 ? 10 : repeats ? stream[i + 1] : -1;
    EXPECT_EQ(hints[i].token, expected) << i;
    EXPECT_EQ(hints[i].beta, expected < 0 ? 0.0f : 2.625f) << i;  // fixed, not by confidence
  }
  ThreadPool pool(2);
  const TiltHints at_once(recipe, stream, pool);
  for (size_t i = 0; i < hints.size(); ++i) EXPECT_EQ(at_once.of(static_cast<int64_t>(i) + 1).hint.token, hints[i].token) << i;
  expert.clear();
  EXPECT_EQ(hints_along(expert, {1, 5, 6}).back().token, -1);
}

TEST(SingleContext, TiltsAsTheSpecsExample) {
  const auto change = [](double p, bool hit) {
    const std::vector<float> logits{static_cast<float>(std::log(p)), static_cast<float>(std::log(1 - p))};
    const double nll = -static_cast<double>(logits[hit ? 0 : 1]);
    return finish(Distribution{logits, 0, {}}.tilted({{0, 2.625f}}), nll, hit ? 0 : 1).nll - nll;
  };
  EXPECT_NEAR(change(0.2, true), -1.3549825, 1e-6);
  EXPECT_NEAR(change(0.2, false), 1.2700175, 1e-6);
  EXPECT_NEAR(change(0.9, true), -0.0973439, 1e-6);
  EXPECT_NEAR(change(0.9, false), 2.5276561, 1e-6);
}

TEST_F(TokenExpertTest, ProposesWhatFollowedTheSameTokensBefore) {
  std::vector<uint16_t> stream{1};
  for (int round = 0; round < 3; ++round)
    for (uint16_t token = 20; token < 40; ++token) stream.push_back(token);
  const Hint hint = hint_after(stream);
  EXPECT_EQ(hint.token, 39);
  EXPECT_EQ(hint.beta, 1.0f);  // sure
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
