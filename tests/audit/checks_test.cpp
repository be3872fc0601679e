// Each check finds the record that breaks it.
#include "audit/checks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fairway {
namespace {

const std::vector<uint16_t> kStream{1, 2, 0, 1, 2, 0};

std::vector<TargetScore> some(size_t count, float nll = 1) { return std::vector<TargetScore>(count, TargetScore{nll, 9}); }

TEST(Checks, CoverageFindsGapsAndDoubles) {
  ScoreLedger ledger = ScoreLedger::unsafe_for_negative_control(kStream);
  ledger.score(1, some(4));
  EXPECT_TRUE(check_coverage(ledger).has_value());
  ledger.score(5, some(1));
  EXPECT_FALSE(check_coverage(ledger).has_value());
  EXPECT_FALSE(check_single_pass(ledger).has_value());
  ledger.score(5, some(1));
  EXPECT_TRUE(check_coverage(ledger).has_value());
  EXPECT_TRUE(check_single_pass(ledger).has_value());
}

TEST(Checks, UpdatesBeforeScoresAreFound) {
  ScoreLedger ledger = ScoreLedger::unsafe_for_negative_control(kStream);
  ledger.score(1, some(2));
  ledger.updated(ledger.unsafe_for_negative_control(1, 3), UpdateScope::stream);
  EXPECT_FALSE(check_update_order(ledger).has_value());
  ledger.updated(ledger.unsafe_for_negative_control(2, 4), UpdateScope::window);
  ledger.score(3, some(3));
  EXPECT_TRUE(check_update_order(ledger).has_value());
}

TEST(Checks, NormalisationFindsWrongSumsAndScores) {
  const int64_t target = 2;
  const auto ledger_with = [&](const std::vector<float>& values, float nll) {
    ScoreLedger ledger(kStream);
    ledger.capture({&target, 1});
    *ledger.captured(target) = values;
    ledger.score(1, some(5, nll));
    return ledger;
  };
  const auto log_of = [](double p) { return static_cast<float>(std::log(p)); };
  const std::vector<float> good{log_of(0.5), log_of(0.25), log_of(0.25)};
  EXPECT_FALSE(check_normalisation(ledger_with(good, -log_of(0.5))).has_value());
  EXPECT_TRUE(check_normalisation(ledger_with(good, -log_of(0.4))).has_value());
  EXPECT_TRUE(check_normalisation(ledger_with({log_of(0.5), log_of(0.3), log_of(0.3)}, -log_of(0.5))).has_value());
  EXPECT_TRUE(check_normalisation(ledger_with({NAN, NAN, NAN}, NAN)).has_value());
  EXPECT_TRUE(check_normalisation(ledger_with({}, 1)).has_value());
}

TEST(Checks, PrefixesAreComparedBitForBit) {
  ScoreLedger a(kStream), b(kStream);
  a.score(1, some(5));
  b.score(1, some(3));
  b.score(4, some(2, std::nextafter(1.0f, 2.0f)));
  EXPECT_FALSE(check_same_prefix(a, b, 4).has_value());
  EXPECT_TRUE(check_same_prefix(a, b, 5).has_value());
}

}  // namespace
}  // namespace fairway
