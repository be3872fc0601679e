// Bytes and bits (scoring spec §1, §11.1, §11.7) and the windows that reach every target once (§2.2).
#include "score/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "score/documents.h"
#include "score/windows.h"

namespace fairway {
namespace {

// Ids: BOS, U+2581 the, cat, a byte, lone U+2581.
enum : uint16_t { kBos, kThe, kCat, kByte, kSpace };
const ByteTables kTables{{0, 3, 3, 1, 0}, {0, 1, 0, 0, 1}, {1, 0, 0, 0, 0}};
const std::vector<uint16_t> kStream{kBos, kThe, kCat, kSpace, kByte, kBos, kThe};

ScoreLedger scored(std::span<const uint16_t> stream, float nll) {
  ScoreLedger ledger(stream);
  ledger.score(1, std::vector<TargetScore>(stream.size() - 1, TargetScore{nll, 0}));
  return ledger;
}

TEST(Metric, BytesOfTheSpecsExample) {
  const TargetBytes bytes(kTables);
  const std::vector<int64_t> expected{3, 3, 1, 1, 0, 3};
  for (int64_t target = 1; target <= 6; ++target)
    EXPECT_EQ(bytes.of(kStream, target), expected[static_cast<size_t>(target - 1)]) << target;
  const Score score = measure(scored(kStream, 2.0f), bytes);
  EXPECT_EQ(score.bytes, 11);
  EXPECT_EQ(score.tokens, 6);
  EXPECT_DOUBLE_EQ(score.bits_per_byte(), 12.0 / std::log(2.0) / 11);
}

TEST(Metric, BytesMayComeFromAFile) {
  const std::vector<uint16_t> counts{9, 4, 0, 2, 1, 0, 5};
  EXPECT_EQ(measure(scored(kStream, 1.0f), TargetBytes(counts)).bytes, 12);
}

TEST(Metric, ATargetWithoutAScoreIsNoScore) {
  ScoreLedger ledger(kStream);
  ledger.score(1, std::vector<TargetScore>(3));
  EXPECT_THROW(measure(ledger, TargetBytes(kTables)), WorkError);
}

TEST(Metric, ALossThatIsNoNumberIsNoScore) {
  for (const float nll : {NAN, INFINITY}) EXPECT_THROW(measure(scored(kStream, nll), TargetBytes(kTables)), WorkError);
}

TEST(Metric, PublishedLossAndBitsAgree) {  // scoring spec §11.7
  Score score{.tokens = 1'000'000, .bytes = 2'435'924};
  score.nats = 1.11508120 * std::log(2.0) * static_cast<double>(score.bytes);
  EXPECT_NEAR(score.loss(), 1.88276292, 1e-6);
  EXPECT_NEAR(score.bits_per_byte(), 1.11508120, 1e-12);
}

TEST(Metric, AUniformModelScoresLogVOverBytesPerToken) {  // scoring spec §1.6
  const struct {
    double vocab, bytes_per_token, bpb;
  } cases[] = {{1024, 2.43593, 4.1052}, {4096, 3.3195, 3.615}, {4608, 3.39287, 3.5869}, {8192, 3.72663, 3.4884}};
  for (const auto& c : cases) {
    Score score{.tokens = 1'000'000, .bytes = static_cast<int64_t>(c.bytes_per_token * 1e6)};
    score.nats = std::log(c.vocab) * 1e6;
    EXPECT_NEAR(score.bits_per_byte(), c.bpb, 1e-4) << c.vocab;
  }
}

TEST(Metric, TheChallengeKeepsWholeWindows) {
  EXPECT_EQ(challenge_targets(44'528'744, 2048), 44'527'616);
  EXPECT_EQ(challenge_targets(2049, 2048), 2048);
  EXPECT_EQ(challenge_targets(2048, 2048), 0);
  EXPECT_EQ(challenge_targets(0, 2048), 0);
}

TEST(WindowPlan, EveryTargetOnceForAnyLengths) {
  for (int64_t targets = 0; targets < 60; ++targets) {
    for (int64_t context = 1; context < 14; ++context) {
      for (int64_t stride = 1; stride <= context; ++stride) {
        const WindowPlan plan(targets, context, stride);
        int64_t reached = 0;
        for (int64_t k = 0; k < plan.count(); ++k) {
          const ScoreWindow window = plan.at(k);
          ASSERT_EQ(window.first, reached + 1) << targets << " " << context << " " << stride;
          ASSERT_GT(window.count(), 0);
          ASSERT_EQ(window.start, k * stride);
          ASSERT_LE(window.position() + window.count(), context);
          if (k > 0 && k + 1 < plan.count()) {
            ASSERT_EQ(window.count(), stride);
          }
          reached = window.end - 1;
        }
        ASSERT_EQ(reached, targets);
      }
    }
  }
}

TEST(WindowShare, EveryWindowBelongsToOneRank) {
  for (int64_t windows = 0; windows < 40; ++windows) {
    for (int64_t ranks = 1; ranks < 12; ++ranks) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const WindowShare share = share_of_windows(windows, rank, ranks);
        ASSERT_EQ(share.begin, next);
        ASSERT_LE(share.end - share.begin, windows / ranks + 1);
        next = share.end;
      }
      ASSERT_EQ(next, windows);
    }
  }
}

TEST(WindowPlan, CountsOfThePublishedRuns) { EXPECT_EQ(WindowPlan(44'528'743, 2048, 64).count(), 695'731); }

TEST(Documents, EveryTargetBelongsToOne) {
  const std::vector<uint16_t> stream{1, 4, 5, 1, 1, 6, 7};
  const auto documents = document_ranges(stream, 1);
  int64_t next = 1;
  for (const DocumentRange& document : documents) {
    EXPECT_EQ(document.first, next);
    next = document.end;
  }
  EXPECT_EQ(next, 7);
  ASSERT_EQ(documents.size(), 3U);
  EXPECT_EQ(documents[0].end, 4);  // through the next start
  EXPECT_EQ(documents[1].count(), 1);
}

}  // namespace
}  // namespace fairway
