// A share that went through bytes merges to what it was.
#include <gtest/gtest.h>

#include "score/ledger.h"

namespace fairway {
namespace {

TEST(LedgerBytes, SharesSurviveThem) {
  std::vector<uint16_t> stream(21);
  for (size_t i = 0; i < stream.size(); ++i) stream[i] = static_cast<uint16_t>(i);
  const auto score = [](ScoreLedger& ledger, int64_t begin, int64_t end) {
    for (int64_t target = begin; target < end; ++target) {
      const TargetScore one{static_cast<float>(target) * 0.37F, static_cast<uint64_t>(target) << 40};
      ledger.score(target, std::span(&one, 1));
      if (target % 3 == 0) ledger.updated(ledger.scored(target, target + 1), UpdateScope::stream);
    }
  };
  ScoreLedger whole(stream), merged(stream);
  score(whole, 1, 21);
  int32_t version = 0;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{1, 8}, {8, 8}, {8, 15}, {15, 21}}) {
    ScoreLedger share(stream), copy(stream);
    share.take_share(begin, end, version);
    score(share, begin, end);
    version = share.state_version();
    copy.take_share_bytes(share.share_bytes());
    EXPECT_EQ(copy.share_bytes(), share.share_bytes());
    merged.merge(copy);
  }
  EXPECT_TRUE(merged.complete());
  EXPECT_EQ(merged.state_version(), whole.state_version());
  for (int64_t target = 1; target <= 20; ++target) {
    EXPECT_EQ(merged.nll(target), whole.nll(target));
    EXPECT_EQ(merged.digest(target), whole.digest(target));
    EXPECT_EQ(merged.version(target), whole.version(target));
  }
}

TEST(LedgerBytes, ACutShareIsRefused) {
  const std::vector<uint16_t> stream(9);
  ScoreLedger share(stream), other(stream);
  share.take_share(3, 6, 0);
  const std::string bytes = share.share_bytes();
  EXPECT_ANY_THROW(other.take_share_bytes(std::string_view(bytes).substr(0, bytes.size() - 1)));
}

}  // namespace
}  // namespace fairway
