// Sets of seeds: the published values of scoring spec §9.3b, tokenizers that differ, seeds that are paired.
#include "analysis/compare_runs.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "analysis/published.h"
#include "base/error.h"

namespace fairway {
namespace {

using testing::HasSubstr;

TEST(Published, MeansAreThePublishedMeans) {
  const auto bpb = [](const char* name) { return mean(find_published(name)->bpb); };
  const auto nats = [](const char* name) { return mean(find_published(name)->nats); };
  EXPECT_NEAR(bpb("pr549"), 1.1194, 5e-5);
  EXPECT_NEAR(bpb("pr1019"), 1.11474, 5e-6);
  EXPECT_NEAR(nats("pr1019"), 1.88218, 5e-6);
  EXPECT_NEAR(nats("pr1105-kernels"), 1.8806, 5e-5);
  EXPECT_NEAR(nats("pr1105-mid"), 1.87844, 5e-6);
  EXPECT_NEAR(bpb("pr1105-mid"), 1.1125, 5e-5);
  EXPECT_NEAR(nats("pr1105-slot"), 1.87222, 5e-6);
  EXPECT_NEAR(bpb("pr1394"), 1.08563, 5e-6);
  EXPECT_NEAR(bpb("pr1493"), 1.0810, 5e-5);
  EXPECT_NEAR(bpb("pr1855"), 1.06108, 5e-6);
  EXPECT_EQ(find_published("pr1"), nullptr);
}

TEST(Published, EveryEntryHasAValueForEachSeed) {
  for (const PublishedScores& entry : published_scores()) {
    EXPECT_TRUE(entry.nats.empty() || entry.nats.size() == entry.seeds.size()) << entry.name;
    EXPECT_TRUE(entry.bpb.empty() || entry.bpb.size() == entry.seeds.size()) << entry.name;
    EXPECT_FALSE(entry.nats.empty() && entry.bpb.empty()) << entry.name;
    EXPECT_GE(entry.seeds.size(), 3U);
  }
}

TEST(Published, TiltsGainAndTheirSpread) {
  const Comparison tilt = compare_scores(read_scores({"pr1420"}), read_scores({"pr1420-sliding"}), true);
  EXPECT_NEAR(tilt.delta_bpb, -0.00014, 5e-6);  // scoring spec §9.3
  EXPECT_LT(tilt.test.p, 1e-6);                 // the seeds share their noise …
  EXPECT_GT(compare_scores(read_scores({"pr1420"}), read_scores({"pr1420-sliding"}), false).test.p, 0.5);  // … unpaired
  EXPECT_FALSE(tilt.record);
  const Comparison final = compare_scores(read_scores({"pr1514"}), read_scores({"pr1514-sliding"}), true);
  EXPECT_NEAR(final.delta_bpb, -0.00171, 5e-6);
}

TEST(CompareScores, WelchOnNatsWhenBothHaveThem) {
  const Comparison c = compare_scores(read_scores({"pr1105-slot"}), read_scores({"pr1019"}), false);
  EXPECT_FALSE(c.through_bytes);
  EXPECT_NEAR(c.delta_nats, -0.009955, 5e-6);
  EXPECT_TRUE(c.record);  // by the numbers; the mode is not legal
  EXPECT_LT(c.margin.p, 0.01);
  EXPECT_NEAR(c.delta_bpb, c.delta_nats / 1.68846, 1e-6);
  EXPECT_FALSE(compare_scores(read_scores({"pr1105-mid"}), read_scores({"pr1019"}), false).record);  // 0.0037 nats
}

TEST(CompareScores, OtherTokenizersAreComparedThroughBytes) {
  const double nats_per_bit = 2.577;  // of vocabulary 8192
  SeedScores runs{.nats = {}, .bpb = {1.0800, 1.0805, 1.0795}, .seeds = {1, 2, 3}};
  runs.on = {.text = "t", .tokenizer = "sp8192", .tokens = 40'540'160, .bytes = 151'078'222, .whole = true, .packed = true};
  for (const double bits : runs.bpb) runs.nats.push_back(bits * nats_per_bit);
  const Comparison c = compare_scores(runs, read_scores({"pr1019"}), false);
  EXPECT_TRUE(c.through_bytes);
  EXPECT_NEAR(c.margin_bpb, 0.00194, 5e-6);  // scoring spec §7.5
  EXPECT_NEAR(c.delta_nats, c.delta_bpb * nats_per_bit, 1e-12);
  EXPECT_TRUE(c.record);
  EXPECT_THAT(to_text(c), HasSubstr("on bits per byte"));
}

TEST(CompareScores, WithoutAnyNatsTheRuleIsLeftOpen) {
  const Comparison c = compare_scores(read_scores({"pr1855"}), read_scores({"pr1493"}), false);
  EXPECT_NEAR(c.delta_bpb, -0.01992, 5e-5);
  EXPECT_TRUE(std::isnan(c.delta_nats));
  EXPECT_FALSE(c.record);
  EXPECT_TRUE(to_json(c)["delta_nats"].is_null());
  EXPECT_THAT(to_text(c), HasSubstr("not known without nats per token"));
  EXPECT_THROW(compare_scores(read_scores({"pr1105-slot"}), read_scores({"pr549"}), false), InputError);
}

TEST(CompareScores, PairsBySeedAndRefusesOthers) {
  const SeedScores runs{.nats = {1.0, 2.0, 3.0}, .bpb = {1.0, 2.0, 3.0}, .seeds = {1, 2, 3}};
  const SeedScores turned{.nats = {3.1, 2.1, 1.1}, .bpb = {3.1, 2.1, 1.1}, .seeds = {3, 2, 1}};
  EXPECT_NEAR(compare_scores(runs, turned, true).delta_nats, -0.1, 1e-12);
  EXPECT_LT(compare_scores(runs, turned, true).test.p, 1e-6);
  SeedScores other = turned;
  other.seeds = {3, 2, 4};
  EXPECT_THROW(compare_scores(runs, other, true), InputError);
  other.seeds.clear();  // not known: in the order given
  EXPECT_GT(compare_scores(runs, other, true).test.p, 0.5);
}

TEST(ReadScores, TakesSeedsFromTheFolders) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("fairway_seeds_" + std::to_string(getpid()));
  for (const int seed : {7, 9}) {
    const fs::path run = folder / ("seed" + std::to_string(seed));
    fs::create_directories(run);
    std::ofstream(run / "score.json")
        << R"({"text": "x", "tokenizer": "y", "tokens": 64, "bytes": 128, "whole": true, "packed": true, "legal": true, )"
        << R"("mode": "plain", "context": 64, "val_loss": 2.0, "val_bpb": 1.)" << seed << "}";
    std::ofstream(run / "recipe.toml") << "[data]\nseq_len = 64\n\n[train]\nsteps = 4\nseed = " << seed << "\n";
  }
  std::ofstream(folder / "seeds.json") << R"({"ledger": "seeds", "seeds": [7, 9]})";
  const SeedScores scores = read_scores({folder.string()});
  EXPECT_EQ(scores.seeds, (std::vector<int64_t>{7, 9}));
  EXPECT_EQ(scores.bpb, (std::vector<double>{1.7, 1.9}));
  fs::remove(folder / "seed9" / "score.json");
  EXPECT_THROW(read_scores({folder.string()}), InputError);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace fairway
