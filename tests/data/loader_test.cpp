#include "data/loader.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "data/samplers.h"
#include "data/scratch_folder.h"

namespace fairway::data {
namespace {

using Rows = std::vector<int32_t>;

Rows copy_of(const Tensor& tensor) { return {tensor.as<int32_t>(), tensor.as<int32_t>() + tensor.numel()}; }

SamplerOptions small(SamplerKind kind) {
  SamplerOptions options;
  options.kind = kind;
  options.length = kind == SamplerKind::docpack ? 96 : 16;
  options.rows = kind == SamplerKind::docpack ? 1 : 6;
  options.world = 4;
  options.max_segment = 20;
  return options;
}

class EachSampler : public testing::TestWithParam<SamplerKind> {
 protected:
  ScratchFolder folder_;
  void SetUp() override { write_numbered_shards(folder_.path(), {3000, 2100, 1700, 2600, 1300}, 37); }
};

TEST_P(EachSampler, BatchesAreTheWindowsOfThePlan) {
  const ShardSet shards = ShardSet::open_train(folder_.path());
  const SamplerOptions options = small(GetParam());
  const Stopwatch watch;
  Loader loader(shards, options, {.split = 1, .vocab = 1024});
  EXPECT_EQ(loader.waited_seconds(), 0.0);
  auto sampler = make_sampler(options, corpus_of(shards));
  std::vector<Window> plan(static_cast<size_t>(options.rows * options.world));
  const auto length = static_cast<size_t>(options.length), rows = static_cast<size_t>(options.rows);
  std::vector<uint16_t> expected(length + 1);
  for (int64_t step = 0; step < 30; ++step) {
    sampler->next(plan);
    for (size_t rank = 0; rank < 4; ++rank) {
      const Batch& batch = loader.next();
      ASSERT_EQ(batch.step, step);
      ASSERT_EQ(batch.emulated_rank, static_cast<int>(rank));
      for (size_t row = 0; row < rows; ++row) {
        shards.read_wrapped(plan[rank * rows + row], expected);
        for (size_t t = 0; t < length; ++t) {
          ASSERT_EQ(batch.tokens.as<int32_t>()[row * length + t], expected[t]);
          ASSERT_EQ(batch.targets.as<int32_t>()[row * length + t], expected[t + 1]);
        }
      }
    }
  }
  EXPECT_GT(loader.waited_seconds(), 0.0);  // asking for a batch takes some time …
  EXPECT_LE(loader.waited_seconds(), watch.seconds()) << "… but no more than has passed";
}

TEST_P(EachSampler, RanksTogetherReadTheSingleRanksPlan) {
  const ShardSet shards = ShardSet::open_train(folder_.path());
  SamplerOptions options = small(GetParam());
  options.world = 8;
  for (const int ranks : {1, 2, 4, 8}) {
    Loader single(shards, options, {});
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int rank = 0; rank < ranks; ++rank)
      loaders.push_back(std::make_unique<Loader>(shards, options, LoaderOptions{.rank = rank, .ranks = ranks}));
    for (int batch = 0; batch < 40; ++batch) {
      Loader& loader = *loaders[static_cast<size_t>(batch % options.world * ranks / options.world)];
      EXPECT_EQ(copy_of(loader.next().tokens), copy_of(single.next().tokens)) << ranks << " " << batch;
    }
  }
}

TEST_P(EachSampler, SplitsAreTheSameRows) {
  const ShardSet shards = ShardSet::open_train(folder_.path());
  const SamplerOptions options = small(GetParam());
  if (options.rows == 1) GTEST_SKIP() << "one packed row cannot be split";
  Loader whole(shards, options, {}), split(shards, options, {.split = 3});
  for (int batch = 0; batch < 10; ++batch) {
    Rows joined;
    const Rows expected = copy_of(whole.next().targets);
    for (int part = 0; part < 3; ++part) {
      const Rows rows = copy_of(split.next().targets);
      joined.insert(joined.end(), rows.begin(), rows.end());
    }
    EXPECT_EQ(joined, expected);
  }
}

TEST_P(EachSampler, ResumesAtAnyBatch) {
  const ShardSet shards = ShardSet::open_train(folder_.path());
  const SamplerOptions options = small(GetParam());
  for (const int before : {0, 1, 3, 4, 29, 170}) {
    Loader straight(shards, options, {});
    for (int i = 0; i < before; ++i) straight.next();
    const auto state = straight.save();
    Loader resumed(shards, options, {.queue = 2});
    resumed.next();
    resumed.restore(state);
    EXPECT_EQ(resumed.save(), state);
    for (int i = 0; i < 60; ++i)
      ASSERT_EQ(copy_of(resumed.next().tokens), copy_of(straight.next().tokens)) << before << " " << i;
    EXPECT_EQ(resumed.save(), straight.save());
  }
}

TEST_P(EachSampler, RefusesAStateOfOtherData) {
  const ShardSet shards = ShardSet::open_train(folder_.path());
  SamplerOptions options = small(GetParam());
  Loader loader(shards, options, {});
  loader.next();
  auto state = loader.save();
  Rows expected;
  {
    Loader same(shards, options, {});
    same.next();
    expected = copy_of(same.next().tokens);
  }
  options.seed += 1;
  Loader other(shards, options, {});
  EXPECT_THROW(other.restore(state), InputError);
  EXPECT_THROW(loader.restore(std::span(state).first(12)), InputError);
  state.push_back({});
  EXPECT_THROW(loader.restore(state), InputError);
  EXPECT_EQ(copy_of(loader.next().tokens), expected);  // and it goes on as if nothing had been tried
}

TEST_P(EachSampler, DamagedStatesNeverLeaveTheShards) {
  const ShardSet shards = ShardSet::open_train(folder_.path());
  const SamplerOptions options = small(GetParam());
  auto sampler = make_sampler(options, corpus_of(shards));
  std::vector<Window> plan(static_cast<size_t>(options.rows * options.world));
  for (int i = 0; i < 5; ++i) sampler->next(plan);
  const auto good = sampler->save();
  Rng rng(17);
  for (int round = 0; round < 300; ++round) {
    auto bad = good;
    bad[8 + rng.below(bad.size() - 8)] = static_cast<std::byte>(rng.next_u64());
    try {
      sampler->restore(bad);
      for (int i = 0; i < 3; ++i) sampler->next(plan);
      for (const Window& window : plan) {
        ASSERT_LT(window.shard, shards.size());
        const uint64_t last = window.position + (sampler->crosses_shards() ? 0 : static_cast<uint64_t>(options.length));
        ASSERT_LT(last, shards[window.shard].tokens());
      }
    } catch (const InputError&) {}
  }
}

INSTANTIATE_TEST_SUITE_P(Loader, EachSampler,
                         testing::Values(SamplerKind::sequential, SamplerKind::coprime, SamplerKind::shuffled,
                                         SamplerKind::docpack),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST(Loader, PacksSegmentsFromDocumentStarts) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {5000}, 37);
  const ShardSet shards = ShardSet::open_train(folder.path());
  SamplerOptions options = small(SamplerKind::docpack);
  options.world = 2;
  Loader loader(shards, options, {});
  for (int i = 0; i < 20; ++i) {
    const Batch& batch = loader.next();
    const Rows tokens = copy_of(batch.tokens), starts = copy_of(batch.segment_start);
    ASSERT_EQ(starts.size(), 96U);
    for (int32_t t = 0; t < 96; ++t) {
      const auto at = static_cast<size_t>(t);
      const bool begins = t == 0 || tokens[at] == 1 || t - starts[at - 1] == 20;
      ASSERT_EQ(starts[at], begins ? t : starts[at - 1]);
    }
  }
}

TEST(Loader, ErrorsOfTheReaderReachTheCaller) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {5000, 5000});
  const ShardSet shards = ShardSet::open_train(folder.path());
  Loader bad_token(shards, small(SamplerKind::coprime), {.vocab = 500});
  EXPECT_THROW(for (int i = 0; i < 10; ++i) bad_token.next(), InputError);
  EXPECT_THROW(bad_token.next(), InputError);

  Loader cut_short(shards, small(SamplerKind::coprime), {});
  cut_short.next();
  std::filesystem::resize_file(folder / "fineweb_train_000001.bin", 1024);
  EXPECT_THROW(for (int i = 0; i < 100; ++i) cut_short.next(), InputError);
}

TEST(Loader, RefusesOptionsThatCannotBe) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {5000});
  const ShardSet shards = ShardSet::open_train(folder.path());
  const SamplerOptions options = small(SamplerKind::coprime);
  EXPECT_THROW(Loader(shards, options, {.ranks = 3}), InputError);
  EXPECT_THROW(Loader(shards, options, {.rank = 2, .ranks = 2}), InputError);
  EXPECT_THROW(Loader(shards, options, {.split = 4}), InputError);
  EXPECT_THROW(Loader(shards, options, {.queue = 0}), InputError);
  SamplerOptions large = options;
  large.length = 5000;
  for (const auto kind : {SamplerKind::sequential, SamplerKind::coprime, SamplerKind::shuffled, SamplerKind::docpack}) {
    large.kind = kind;
    EXPECT_THROW(Loader(shards, large, {}), InputError) << name_of(kind);
  }
}

TEST(Loader, StopsWhileFullAndWhileIdle) {
  const ScratchFolder folder;
  write_numbered_shards(folder.path(), {5000});
  const ShardSet shards = ShardSet::open_train(folder.path());
  for (int i = 0; i < 50; ++i) {
    Loader loader(shards, small(SamplerKind::shuffled), {.queue = 1 + i % 3});
    for (int n = 0; n < i % 5; ++n) loader.next();
  }
}

}  // namespace
}  // namespace fairway::data
