// Results that are read a step late change nothing that a run leaves: records, weights, and what is said and kept when it blows
// up.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <regex>

#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "data/scratch_folder.h"
#include "train/loader_settings.h"
#include "train/loop.h"

namespace fairway {
namespace {

class LateResults : public testing::Test {
 protected:
  LateResults() {
    std::filesystem::create_directories(folder_ / "data");
    write_numbered_shards(folder_ / "data", {30000, 30000});
  }

  // What is left of metrics.jsonl and train.log, and what the run said if it failed.
  struct Left {
    std::string metrics, log, error, averaged;
    bool checkpoint = false;
  };
  Left run(const std::vector<std::string>& overrides, int64_t behind) {
    std::vector<std::string> settings{"model.vocab=1024", "train.steps=12"};
    settings.insert(settings.end(), overrides.begin(), overrides.end());
    const Recipe recipe = load_recipe("smoke", settings);
    const std::filesystem::path path = folder_ / ("run" + std::to_string(runs_++));
    Left left;
    {
      Queue queue(1);
      const auto executor = make_executor(Backend::cpu, queue);
      const data::ShardSet shards = data::ShardSet::open_train(folder_ / "data");
      data::Loader loader(shards, sampler_options(recipe), loader_options(recipe));
      RunFolder folder(path, recipe, false);
      Trainer trainer(recipe, micro_batch_geometry(recipe), *executor);
      try {
        train(recipe, trainer, loader, folder, queue.pool(), {.quiet = true, .seed = 1, .behind = behind});
      } catch (const WorkError& error) {
        left.error = error.what();
      }
    }
    left.metrics = read_file(path / "metrics.jsonl");
    left.log = std::regex_replace(read_file(path / "train.log"), std::regex("[0-9.]+ms"), "ms");
    left.checkpoint = std::filesystem::exists(path / "checkpoint" / "latest.safetensors");
    if (std::filesystem::exists(path / "averaged.safetensors")) left.averaged = read_file(path / "averaged.safetensors");
    return left;
  }

  ScratchFolder folder_;
  int runs_ = 0;
};

TEST_F(LateResults, LeaveTheSameRun) {
  const std::vector<std::string> settings{"train.checkpoint_every=5"};
  const Left now = run(settings, 0), late = run(settings, 1);
  EXPECT_TRUE(now.error.empty()) << now.error;
  EXPECT_THAT(now.metrics, testing::HasSubstr("\"step\":12"));
  EXPECT_EQ(late.metrics, now.metrics);
  EXPECT_EQ(late.log, now.log);
  EXPECT_FALSE(now.averaged.empty());
  EXPECT_TRUE(late.averaged == now.averaged);
}

TEST_F(LateResults, NameTheStepThatBlewUp) {
  std::vector<std::string> settings{"train.steps=400", "train.checkpoint_every=4", "optim.clip=0"};
  for (const char* group : {"matrix", "token", "scalar"})
    for (const char* key : {"lr", "wd"}) settings.push_back(fmt::format("optim.{}.{}=100", group, key));
  const Left now = run(settings, 0), late = run(settings, 1);
  EXPECT_THAT(now.error, testing::StartsWith("step "));
  EXPECT_EQ(late.error, now.error);
  EXPECT_EQ(late.metrics, now.metrics);
  EXPECT_TRUE(late.checkpoint == now.checkpoint);
  EXPECT_TRUE(late.averaged.empty());
}

TEST_F(LateResults, StepsAreFinishedInTheirOrder) {
  const Recipe recipe = load_recipe("smoke");
  Queue queue(1);
  const auto executor = make_executor(Backend::cpu, queue);
  const Spec spec{{recipe.train.micro_batch_tokens}, DType::i32};
  std::vector<int32_t> tokens(static_cast<size_t>(recipe.train.micro_batch_tokens + 1));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 37 % 512);
  const auto next = [&] { return MicroBatch{make_view(tokens.data(), spec), make_view(tokens.data() + 1, spec), {}}; };
  const auto trainer = [&] {
    auto made = std::make_unique<Trainer>(recipe, micro_batch_geometry(recipe), *executor);
    made->initialize(1, queue.pool());
    return made;
  };
  const auto one = trainer(), two = trainer();
  const double first = one->step(next, {.step = 1}, {}).loss, second = one->step(next, {.step = 2}, {}).loss;
  two->begin_step(next, {.step = 1}, {});
  two->begin_step(next, {.step = 2}, {});
  EXPECT_EQ(two->finish_step().loss, first);
  EXPECT_EQ(two->finish_step().loss, second);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace fairway
