// Hints of a whole stream against their definition, target by target: the same whatever the threads, blind to what comes later.
#include "score/tilt_hints.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "score/ngram_experts.h"

namespace fairway {
namespace {

// Passages that come again, some with a change, among noise.
std::vector<uint16_t> repeating(int64_t tokens, uint64_t seed = 3) {
  Rng rng(seed);
  std::vector<uint16_t> out;
  while (static_cast<int64_t>(out.size()) < tokens) {
    if (out.size() > 100 && rng.below(3) == 0) {
      const size_t from = rng.below(out.size() - 60);
      for (size_t i = 0; i < 40; ++i) out.push_back(rng.below(30) == 0 ? static_cast<uint16_t>(rng.below(90)) : out[from + i]);
    }
    for (int i = 0; i < 9; ++i) out.push_back(static_cast<uint16_t>(rng.below(90)));
  }
  out.resize(static_cast<size_t>(tokens));
  return out;
}

std::vector<Hint> in_turn(const NgramRecipe& recipe, const std::vector<uint16_t>& stream) {
  TokenExpert expert(ngram_rules(recipe), 20, NgramTable::Probing::whole_table);
  ScoreLedger ledger(stream);
  std::vector<Hint> hints{{}};
  for (int64_t target = 1; target <= ledger.targets(); ++target) {
    hints.push_back(expert.hint());
    const TargetScore score{};
    ledger.score(target, {&score, 1});
    expert.absorb(ledger.scored(target, target + 1));
  }
  return hints;
}

class TiltHintsTest : public testing::TestWithParam<NgramRecipe> {
 protected:
  std::vector<Hint> hints_of(const std::vector<uint16_t>& stream, int threads = 2) {
    ThreadPool pool(threads);
    const TiltHints hints(GetParam(), stream, pool);
    std::vector<Hint> out;
    for (size_t target = 0; target < stream.size(); ++target) out.push_back(hints.of(static_cast<int64_t>(target)).hint);
    return out;
  }
  static void expect_same(const std::vector<Hint>& a, const std::vector<Hint>& b, size_t count) {
    for (size_t target = 1; target < count; ++target) {
      ASSERT_EQ(a[target].token, b[target].token) << target;
      ASSERT_EQ(a[target].beta, b[target].beta) << target;
    }
  }
};

TEST_P(TiltHintsTest, AreThoseLookedUpTargetByTarget) {
  for (const int64_t tokens : {1, 2, 9, 16, 17, 300, 70'000, 200'000}) {  // more than a block, and several parts
    const std::vector<uint16_t> stream = repeating(tokens);
    const std::vector<Hint> should = in_turn(GetParam(), stream), are = hints_of(stream);
    ASSERT_EQ(are.size(), stream.size());
    expect_same(should, are, stream.size());
    const auto hinted = std::count_if(are.begin(), are.end(), [](const Hint& hint) { return hint.token >= 0; });
    EXPECT_GE(hinted, tokens < 70'000 ? 0 : tokens / 50);
  }
}

TEST_P(TiltHintsTest, ThreadsChangeNothing) {
  const std::vector<uint16_t> stream = repeating(150'000);
  const std::vector<Hint> one = hints_of(stream, 1);
  for (const int threads : {2, 3, 16}) expect_same(one, hints_of(stream, threads), stream.size());
}

TEST_P(TiltHintsTest, LaterTokensChangeNothing) {
  const std::vector<uint16_t> stream = repeating(20'000);
  const std::vector<Hint> truth = hints_of(stream);
  for (const size_t cut : {size_t{1}, size_t{17}, size_t{5'000}, size_t{19'999}}) {
    std::vector<uint16_t> changed = stream;
    for (size_t i = cut; i < changed.size(); ++i) changed[i] = static_cast<uint16_t>(changed[i] * 7 + i) % 90;
    expect_same(truth, hints_of(changed), cut + 1);  // the hint of the changed target itself too
    changed.resize(cut);
    expect_same(truth, hints_of(changed), cut);
  }
}

TEST_P(TiltHintsTest, ATokenThatNeverEndsIsHintedAt) {
  const std::vector<uint16_t> stream(100'000, 7);
  const std::vector<Hint> hints = hints_of(stream);
  EXPECT_EQ(hints.back().token, 7);
  EXPECT_EQ(hints[2].token, -1);
}

INSTANTIATE_TEST_SUITE_P(Rules, TiltHintsTest,
                         testing::Values(NgramRecipe{}, NgramRecipe{.beta = 1.5, .threshold_scale = 0.75},
                                         NgramRecipe{.beta = 2.625, .order = 15, .threshold = 0.8},
                                         NgramRecipe{.beta = 2.625, .order = 3, .threshold = 0.5}));

TEST(NgramRules, HashesOfAStreamAreThoseOfItsContexts) {
  const std::vector<uint16_t> stream = repeating(50);
  for (const NgramHash hash : {NgramHash::mixed, NgramHash::published, NgramHash::oldest_first}) {
    std::vector<uint64_t> keys(20);
    context_hashes(hash, stream, 9, 12, keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      std::vector<uint16_t> newest_first(stream.begin(), stream.begin() + 12 + static_cast<int64_t>(i));
      std::reverse(newest_first.begin(), newest_first.end());
      EXPECT_EQ(keys[i], context_hash(hash, newest_first, 9)) << i;
    }
  }
}

TEST(TiltHints, WithoutATiltThereAreNone) {
  const TiltHints none;
  EXPECT_EQ(none.of(5).hint.token, -1);
  EXPECT_TRUE(none.of(1, 9).empty());
}

}  // namespace
}  // namespace fairway
