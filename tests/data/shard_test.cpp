#include "data/shard.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "base/rng.h"
#include "data/manifest.h"
#include "data/scratch_folder.h"
#include "data/validation.h"

namespace fairway::data {
namespace {

std::string shard_bytes(int32_t magic, int32_t version, int32_t count, size_t tokens) {
  std::string bytes(1024 + 2 * tokens, '\0');
  const int32_t header[3] = {magic, version, count};
  std::memcpy(bytes.data(), header, sizeof header);
  return bytes;
}

TEST(Shard, WritesTheFormatAndReadsItBack) {
  const ScratchFolder folder;
  const std::vector<uint16_t> tokens = {1, 5, 1023, 7};
  const std::string hash = write_shard(folder / "fineweb_train_000000.bin", tokens);
  std::string expected = shard_bytes(20240520, 1, 4, 4);
  std::memcpy(expected.data() + 1024, tokens.data(), 8);
  EXPECT_EQ(read_file(folder / "fineweb_train_000000.bin"), expected);
  EXPECT_EQ(hash, sha256_hex(expected));
  const ShardSet set = ShardSet::open_train(folder.path());
  EXPECT_EQ(set.total(), 4U);
  EXPECT_EQ(set.read_all(), tokens);
  EXPECT_EQ(set[0].find(1023, 0), 2U);
  EXPECT_EQ(set[0].find(99, 0), 4U);
}

TEST(Shard, RefusesWrongFiles) {
  const ScratchFolder folder;
  const auto path = folder / "fineweb_train_000000.bin";
  const std::vector<std::pair<std::string, std::string>> cases = {{"", "too few"},
                                                                  {std::string(1023, 'x'), "too few"},
                                                                  {shard_bytes(20240521, 1, 4, 4), "magic"},
                                                                  {shard_bytes(20240520, 2, 4, 4), "version"},
                                                                  {shard_bytes(20240520, 1, -1, 4), "-1 tokens"},
                                                                  {shard_bytes(20240520, 1, 5, 4), "1034 bytes were expected"},
                                                                  {shard_bytes(20240520, 1, 3, 4), "1030 bytes were expected"},
                                                                  {shard_bytes(20240520, 1, 0x7FFFFFFF, 4), "expected"}};
  for (const auto& [bytes, part] : cases) {
    put_file(path, bytes);
    try {
      ShardSet::open_train(folder.path());
      FAIL() << part;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("fineweb_train_000000.bin"), std::string::npos);
    }
  }
}

TEST(Shard, RandomHeadersNeverCrash) {
  const ScratchFolder folder;
  Rng rng(5);
  for (int round = 0; round < 100; ++round) {
    std::string bytes = shard_bytes(20240520, 1, 16, 16);
    for (uint64_t i = rng.below(3); i > 0; --i) bytes[rng.below(12)] = static_cast<char>(rng.next_u64());
    bytes.resize(rng.below(4) == 0 ? rng.below(bytes.size()) : bytes.size());
    put_file(folder / "fineweb_train_000000.bin", bytes);
    try {
      EXPECT_EQ(ShardSet::open_train(folder.path()).read_all().size(), 16U);
    } catch (const InputError&) {}
  }
}

TEST(ShardSet, SaysWhenThereIsNothing) {
  const ScratchFolder folder;
  EXPECT_THROW(ShardSet::open_train(folder.path()), InputError);
  EXPECT_THROW(ShardSet::open_train(folder / "absent"), InputError);
  EXPECT_THROW(Validation::open(folder.path()), InputError);
}

TEST(ShardSet, ValidationShardsOpenByTheirOwnDoorOnly) {
  const ScratchFolder folder;
  write_shard(folder / "fineweb_val_000000.bin", std::vector<uint16_t>{1, 2});
  write_shard(folder / "fineweb_val_bytes_000000.bin", std::vector<uint16_t>{0, 3});
  EXPECT_THROW(ShardSet::open_train(folder.path()), InputError);
  EXPECT_THROW(ShardSet::open({folder / "fineweb_val_000000.bin"}), InputError);
  EXPECT_THROW(ShardSet::open({folder / "fineweb_val_bytes_000000.bin"}), InputError);
  const HeldOutTokens read = Validation::read(folder.path());
  EXPECT_EQ(read.tokens, (std::vector<uint16_t>{1, 2}));
  EXPECT_EQ(read.byte_counts, (std::vector<uint16_t>{0, 3}));
}

TEST(ShardSet, WhatIsReadIsNamedByItsBytes) {
  const ScratchFolder folder;
  const std::string first = write_shard(folder / "fineweb_val_000000.bin", std::vector<uint16_t>{1, 2}),
                    second = write_shard(folder / "fineweb_val_000001.bin", std::vector<uint16_t>{3, 4, 5}),
                    counts = write_shard(folder / "fineweb_val_bytes_000000.bin", std::vector<uint16_t>{0, 3, 1, 1, 1});
  const HeldOutTokens read = Validation::read(folder.path());
  ASSERT_EQ(read.shards.size(), 2U);
  EXPECT_EQ(read.shards[0].sha256, first);
  EXPECT_EQ(read.shards[1].sha256, second);
  EXPECT_EQ(read.shards[1].bytes, 1024U + 6U);
  EXPECT_EQ(read.byte_count_files.at(0).sha256, counts);
  Manifest manifest{.vocab = 8, .shards = {{"fineweb_val_000001.bin", 3, second}, {"fineweb_val_bytes_000000.bin", 5, counts}}};
  write_manifest(folder.path(), manifest);
  EXPECT_NO_THROW(Validation::read(folder.path()));
  write_shard(folder / "fineweb_val_bytes_000000.bin", std::vector<uint16_t>{0, 9, 9, 9, 9});  // as many, but other ones
  EXPECT_THROW(Validation::read(folder.path()), InputError);
}

TEST(ShardSet, OrdersNamesAndLeavesByteCountsOut) {
  const ScratchFolder folder;
  const std::vector<uint16_t> a = {1, 2}, b = {1, 3, 4}, c = {9};
  write_shard(folder / "fineweb_val_000001.bin", b);
  write_shard(folder / "fineweb_val_000000.bin", a);
  write_shard(folder / "fineweb_val_bytes_000000.bin", c);
  write_shard(folder / "fineweb_train_000000.bin", c);
  const ShardSet set = Validation::open(folder.path());
  ASSERT_EQ(set.size(), 2U);
  EXPECT_EQ(set.read_all(), (std::vector<uint16_t>{1, 2, 1, 3, 4}));
  EXPECT_EQ(set.locate(2), (Window{1, 0}));
  EXPECT_EQ(set.locate(4), (Window{1, 2}));
}

TEST(ShardSet, ReadsAcrossShardsAndWraps) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {5, 0, 3});
  const ShardSet set = ShardSet::open_train(folder.path());
  std::vector<uint16_t> out(12);
  set.read_wrapped({0, 3}, out);
  const std::vector<Window> places = {{0, 3}, {0, 4}, {2, 0}, {2, 1}, {2, 2}, {0, 0},
                                      {0, 1}, {0, 2}, {0, 3}, {0, 4}, {2, 0}, {2, 1}};
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], expected_token(places[i].shard, places[i].position)) << i;
}

TEST(Shard, CutsWindowsAndChecksTheVocabulary) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {100});
  const ShardSet set = ShardSet::open_train(folder.path());
  std::vector<int32_t> tokens(10), targets(10);
  const Cut cut{89, tokens.data(), targets.data()};
  set[0].cut({&cut, 1}, 10, 102);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(tokens[i], expected_token(0, 89 + i));
    EXPECT_EQ(targets[i], expected_token(0, 90 + i));
  }
  EXPECT_NO_THROW(set[0].cut({&cut, 1}, 10, 0));
  try {
    set[0].cut({&cut, 1}, 10, 101);  // the last target, token 101, is the only one outside
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("token 101 at position 99"), std::string::npos) << error.what();
  }
}

TEST(Shard, NoticesTruncationWhileOpen) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {1000000});
  for (const uint64_t kept : {uint64_t{1024}, uint64_t{5000}, uint64_t{1024 + 2 * 999999}}) {
    write_numbered_shards(folder.path(), {1000000});
    const ShardSet set = ShardSet::open_train(folder.path());
    std::vector<uint16_t> out(1000);
    EXPECT_NO_THROW(set[0].read(999000, out));
    std::filesystem::resize_file(folder / "fineweb_train_000000.bin", kept);
    EXPECT_THROW(set[0].read(999000, out), InputError) << kept;
    EXPECT_THROW(set[0].read(500000, out), InputError) << kept;
    EXPECT_THROW(set[0].find(1, 900000), InputError) << kept;
    std::vector<int32_t> tokens(10), targets(10);
    const Cut cut{800000, tokens.data(), targets.data()};
    EXPECT_THROW(set[0].cut({&cut, 1}, 10, 0), InputError) << kept;
  }
}

TEST(Shard, NoticesRewritingWhileOpen) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {1000});
  const auto path = folder / "fineweb_train_000000.bin";
  const ShardSet set = ShardSet::open_train(folder.path());
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
  std::vector<uint16_t> out(10);
  EXPECT_THROW(set[0].read(0, out), InputError);
}

TEST(Shard, OpensLargeSparseFilesWithoutReadingThem) {
  const ScratchFolder folder;
  const auto path = folder / "fineweb_train_000000.bin";
  put_file(path, shard_bytes(20240520, 1, 0x7FFFFFFF, 0));
  std::filesystem::resize_file(path, 1024 + 2 * uint64_t{0x7FFFFFFF});  // just under 4 GiB and one header over
  const ShardSet set = ShardSet::open_train(folder.path());
  std::vector<uint16_t> out(4, 7);
  set[0].read(0x7FFFFFFF - 4, out);
  EXPECT_EQ(out, (std::vector<uint16_t>{0, 0, 0, 0}));
}

TEST(Manifest, RoundTripsAndNoticesOtherCounts) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {100});
  Manifest manifest{.tokenizer_sha256 = "ab",
                    .vocab = 1024,
                    .documents = 3,
                    .bytes = 400,
                    .case_ops = true,
                    .shards = {{"fineweb_train_000000.bin", 100, "cd"}}};
  write_manifest(folder.path(), manifest);
  const Manifest read = *read_manifest(folder.path());
  EXPECT_EQ(read.tokenizer_sha256, "ab");
  EXPECT_EQ(read.bytes, 400U);
  EXPECT_TRUE(read.case_ops);
  EXPECT_EQ(read.shards.at(0).tokens, 100U);
  EXPECT_NO_THROW(ShardSet::open_train(folder.path()));
  manifest.shards[0].tokens = 99;
  write_manifest(folder.path(), manifest);
  EXPECT_THROW(ShardSet::open_train(folder.path()), InputError);
}

TEST(Manifest, DamageIsRefusedNotCrashedOn) {
  const ScratchFolder folder;
  write_manifest(folder.path(), {.tokenizer_sha256 = "ab", .vocab = 1024, .shards = {{"fineweb_train_000000.bin", 100, "cd"}}});
  const std::string good = read_file(folder / "manifest.json");
  EXPECT_THROW(parse_manifest("", "m"), InputError);
  EXPECT_THROW(parse_manifest("[]", "m"), InputError);
  EXPECT_THROW(parse_manifest("{\"version\": 2}", "m"), InputError);
  Rng rng(3);
  for (int round = 0; round < 500; ++round) {
    std::string bad = good;
    for (uint64_t i = rng.below(4) + 1; i > 0; --i) bad[rng.below(bad.size())] = static_cast<char>(rng.next_u64());
    try {
      parse_manifest(bad, "m");
    } catch (const InputError&) {}
  }
}

}  // namespace
}  // namespace fairway::data
