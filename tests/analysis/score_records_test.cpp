// score.records: what is written is read and summed to the same bits; files that are none are refused.
#include "analysis/score_records.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"

namespace fairway {
namespace {

class Records : public testing::Test {
 protected:
  ~Records() override { std::filesystem::remove(path_); }
  ScoreLedger ledger(int64_t targets) {
    stream_.assign(static_cast<size_t>(targets) + 1, 0);
    std::vector<TargetScore> scores(static_cast<size_t>(targets));
    for (size_t i = 0; i < scores.size(); ++i) scores[i].nll = 1.0f / static_cast<float>(i % 97 + 1);
    ScoreLedger out(stream_);
    out.score(1, scores);
    return out;
  }
  // Two documents, the second a little longer; one where there is only one target.
  static std::vector<DocumentSize> halves(int64_t targets) {
    if (targets == 1) return {{1, 3}};
    return {{targets / 2, targets / 2 * 3}, {targets - targets / 2, (targets - targets / 2) * 3}};
  }
  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("fairway_records_" + std::to_string(getpid()));
  std::vector<uint16_t> stream_;
};

TEST_F(Records, GiveTheSumsOfTheScore) {
  for (const int64_t targets : {int64_t{1}, kScoreBlock, kScoreBlock + 5}) {
    const ScoreLedger scored = ledger(targets);
    const std::vector<uint16_t> counts(static_cast<size_t>(targets) + 1, 3);
    const BlockSums sums = sum_blocks(scored, TargetBytes(counts));
    const std::vector<DocumentSize> documents = halves(targets);
    const FileIdentity written = write_score_records(path_, scored, documents);
    const ScoreRecords read = read_score_records(path_);
    EXPECT_EQ(read.nats, sums.nats);
    EXPECT_EQ(read.targets, targets);
    EXPECT_EQ(read.documents, documents);
    EXPECT_EQ(read.file.bytes, written.bytes);
    double sum = 0;
    for (const double nats : read.document_nats) sum += nats;
    EXPECT_NEAR(sum, measure(sums, targets).nats, 1e-9 * sum);
    EXPECT_EQ(read.file.sha256, written.sha256);
    EXPECT_EQ(read.file.sha256, sha256_of_file(path_));
    EXPECT_EQ(sums.nats.size(), static_cast<size_t>((targets + kScoreBlock - 1) / kScoreBlock));
    const Score score = measure(sums, targets);
    EXPECT_EQ(score.nats, measure(scored, TargetBytes(counts)).nats);
    EXPECT_EQ(score.bytes, 3 * targets);
  }
}

TEST_F(Records, FilesThatAreNone) {
  write_score_records(path_, ledger(10), halves(10));
  const std::string good = read_file(path_);
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    EXPECT_THROW(read_score_records(path_), InputError);
  };
  for (size_t length = 0; length < good.size(); ++length) refused(good.substr(0, length));
  refused(good + "x");
  for (size_t at = 0; at < 16; ++at) {  // the header
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x80);
    refused(changed);
  }
  const size_t table = 16 + 4 * 10;
  for (const size_t at : {table, table + 4, table + 8, table + 15, table + 23, table + 24}) {  // count, targets, signs
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x80);
    refused(changed);
  }
  std::string spoilt = good;
  spoilt.replace(16, 4, "\xFF\xFF\xFF\x7F");  // not a number
  refused(spoilt);
}

TEST_F(Records, OfTheFirstVersionHaveNoDocuments) {
  const ScoreLedger scored = ledger(10);
  write_score_records(path_, scored, halves(10));
  std::string bytes = read_file(path_).substr(0, 16 + 4 * 10);
  bytes[4] = 1;
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  const ScoreRecords read = read_score_records(path_);
  EXPECT_EQ(read.targets, 10);
  EXPECT_TRUE(read.documents.empty());
  EXPECT_EQ(read.file.sha256, sha256_of_file(path_));
}

TEST(DocumentSizes, EndWithTheNextStartToken) {
  const std::vector<uint16_t> stream{1, 5, 6, 1, 7, 1, 8, 9};
  const std::vector<uint16_t> counts{0, 2, 3, 0, 4, 0, 5, 6};
  const std::vector<DocumentSize> expected{{3, 5}, {2, 4}, {2, 11}};
  EXPECT_EQ(document_sizes(stream, TargetBytes(counts), 1), expected);
}

}  // namespace
}  // namespace fairway
