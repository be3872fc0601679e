#include "score/ledger.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace fairway {
namespace {

const std::vector<uint16_t> kStream{1, 5, 6, 7, 8, 9};

std::vector<TargetScore> some(size_t count) { return std::vector<TargetScore>(count, TargetScore{1.5f, 7}); }

// Nobody but the ledger can make tokens to learn from.
static_assert(!std::is_constructible_v<ScoredTokens, int64_t, std::span<const uint16_t>>);
static_assert(!std::is_default_constructible_v<ScoredTokens>);

TEST(ScoreLedger, ASecondScoreOfATargetIsRefused) {
  ScoreLedger ledger(kStream);
  ledger.score(1, some(3));
  EXPECT_THROW(ledger.score(3, some(1)), RuleBroken);
  ledger.score(4, some(2));
  EXPECT_TRUE(ledger.complete());
  EXPECT_EQ(ledger.nll(2), 1.5f);
}

TEST(ScoreLedger, TokensAreHandedOutOnlyAfterTheirScore) {
  ScoreLedger ledger(kStream);
  EXPECT_THROW(ledger.scored(1, 2), RuleBroken);
  ledger.score(1, some(3));
  EXPECT_THROW(ledger.scored(2, 5), RuleBroken);
  const ScoredTokens tokens = ledger.scored(2, 4);
  EXPECT_EQ(std::vector<uint16_t>(tokens.inputs().begin(), tokens.inputs().end()), (std::vector<uint16_t>{5, 6}));
  EXPECT_EQ(std::vector<uint16_t>(tokens.targets().begin(), tokens.targets().end()), (std::vector<uint16_t>{6, 7}));
}

TEST(ScoreLedger, AnUpdateOfTheStreamMovesTheVersionAndOneOfAWindowDoesNot) {
  ScoreLedger ledger(kStream);
  ledger.score(1, some(2));
  ledger.updated(ledger.scored(1, 3), UpdateScope::window);
  ledger.score(3, some(1));
  ledger.updated(ledger.scored(1, 4), UpdateScope::stream);
  ledger.score(4, some(2));
  EXPECT_EQ(ledger.version(3), 0);
  EXPECT_EQ(ledger.version(4), 1);
  ASSERT_EQ(ledger.events().size(), 5U);
  EXPECT_EQ(ledger.events()[3].version_after, 1);
}

TEST(ScoreLedger, ScoringAndLearningTokenByTokenIsOneEvent) {
  ScoreLedger ledger(kStream);
  for (int64_t target = 1; target <= 5; ++target) {
    ledger.score(target, some(1));
    ledger.updated(ledger.scored(target, target + 1), UpdateScope::stream);
  }
  ASSERT_EQ(ledger.events().size(), 1U);
  EXPECT_EQ(ledger.events()[0].kind, EventKind::interleaved);
  EXPECT_EQ(ledger.events()[0].begin, 1);
  EXPECT_EQ(ledger.events()[0].end, 6);
  EXPECT_EQ(ledger.state_version(), 5);
}

TEST(ScoreLedger, AShareScoresItsOwnTargetsAndLearnsFromThoseBefore) {
  ScoreLedger share(kStream);
  share.take_share(3, 5, 0);
  EXPECT_THROW(share.score(2, some(1)), RuleBroken);
  EXPECT_THROW(share.score(5, some(1)), RuleBroken);
  EXPECT_EQ(share.scored(1, 3).count(), 2);
  EXPECT_THROW(share.scored(1, 4), RuleBroken);
  share.score(3, some(2));
  EXPECT_EQ(share.scored(1, 5).count(), 4);
}

TEST(ScoreLedger, SharesMergeAndOverlapIsRefused) {
  ScoreLedger whole(kStream), first(kStream), second(kStream);
  first.take_share(1, 4, 0);
  first.score(1, some(3));
  second.take_share(4, 6, 0);
  second.score(4, some(2));
  whole.merge(first);
  EXPECT_FALSE(whole.complete());
  EXPECT_THROW(whole.merge(first), RuleBroken);
  whole.merge(second);
  EXPECT_TRUE(whole.complete());
  EXPECT_EQ(whole.events().size(), 2U);
}

TEST(ScoreLedger, OnlyTheLedgerOfANegativeControlOpensTheDoor) {
  ScoreLedger control = ScoreLedger::unsafe_for_negative_control(kStream);
  EXPECT_EQ(control.unsafe_for_negative_control(1, 6).count(), 5);
  control.score(1, some(5));
  control.score(5, some(1));
  EXPECT_EQ(control.times_scored(5), 2);
  EXPECT_EQ(control.broken_rules().size(), 1U);
  const ScoreLedger legal(kStream);
  EXPECT_ANY_THROW(legal.unsafe_for_negative_control(1, 6));
}

}  // namespace
}  // namespace fairway
