// Runs that end by the clock, runs that blow up, and one step of every published recipe.
#include <gmock/gmock.h>

#include <chrono>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

TEST(TimedRun, EndsWithTheClockInItsLastStage) {
  const ScratchFolder scratch;
  make_train_shards(scratch / "data");
  const auto begun = std::chrono::steady_clock::now();
  const json result = run_json(train_smoke(scratch / "data", scratch / "run", {"--seconds", "3", "--threads", "1"}));
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  EXPECT_LE(result["train_seconds"].get<double>(), 3.0) << "the budget holds to the last step";
  EXPECT_GE(result["train_seconds"].get<double>(), 2.0);
  EXPECT_LT(wall, 60);
  const std::vector<json> lines = json_lines(scratch / "run" / "metrics.jsonl");
  ASSERT_GE(lines.size(), 4U);
  EXPECT_EQ(lines.size(), result["steps"].get<size_t>());
  EXPECT_EQ(lines.front()["looped"], false);
  EXPECT_EQ(lines.front()["fake_quant"], false);
  EXPECT_EQ(lines.back()["looped"], true);
  EXPECT_EQ(lines.back()["fake_quant"], true);
  EXPECT_THAT(contents(scratch / "run" / "train.log"), HasSubstr("stopping_early: wallclock_cap train_time:"));
  // Its clock goes on where it stood: nothing is left to train.
  const json again = run_json(train_smoke(scratch / "data", scratch / "run", {"--seconds", "3", "--threads", "1", "--resume"}));
  EXPECT_EQ(again["steps"], result["steps"]);
}

TEST(TimedRun, KeepsTheTimeThatCountedCalibrationNeeds) {
  const ScratchFolder scratch;
  make_train_shards(scratch / "data");
  const Args counted{"--set", "quant.calibration=\"train\"", "--set", "quant.rule=\"gptq\""};
  const auto train = [&](const char* name, Args more) {
    more.insert(more.end(), counted.begin(), counted.end());
    return train_smoke(scratch / "data", scratch / name, more);
  };
  const json least = run_json(train("least", {"--seconds", "4", "--set", "train.reserve_seconds=3"}));
  EXPECT_LE(least["train_seconds"].get<double>(), 1.0) << "the recipe's reserve is the least";
  const json kept = run_json(train("kept", {"--seconds", "3"}));
  const std::string log = contents(scratch / "kept" / "train.log");
  const size_t at = log.find("reserve: ");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_LE(kept["train_seconds"].get<double>() + std::stod(log.substr(at + 9)), 3.01) << log;  // told to a hundredth
  const Outcome refused = run_program(train("none", {"--seconds", "0.05"}));
  EXPECT_EQ(refused.status, 2) << refused.text();
  EXPECT_THAT(refused.err, HasSubstr("calibration on training data")) << refused.text();
}

TEST(BlownUpRun, StopsAtTheStepAndKeepsTheLastCheckpoint) {
  const ScratchFolder scratch;
  make_train_shards(scratch / "data");
  const Path run = scratch / "run";
  const Args absurd{"--steps", "400",
                    "--set",   "train.checkpoint_every=1",
                    "--set",   "optim.matrix.lr=100",
                    "--set",   "optim.token.lr=100",
                    "--set",   "optim.scalar.lr=100",
                    "--set",   "optim.matrix.wd=100",
                    "--set",   "optim.token.wd=100",
                    "--set",   "optim.scalar.wd=100",
                    "--set",   "optim.clip=0"};
  const Outcome outcome = run_program(train_smoke(scratch / "data", run, absurd));
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_THAT(outcome.err, testing::ContainsRegex("step [0-9]+: ")) << outcome.text();
  EXPECT_FALSE(fs::exists(run / "averaged.safetensors"));
  const size_t steps = json_lines(run / "metrics.jsonl").size();
  ASSERT_TRUE(fs::exists(run / "checkpoint" / "latest.safetensors")) << outcome.text();
  // The checkpoint loads, and from it the run meets the same end at the same step.
  Args resume = train_smoke(scratch / "data", run, absurd);
  resume.push_back("--resume");
  const Outcome again = run_program(resume);
  EXPECT_EQ(again.status, 1) << again.text();
  EXPECT_THAT(again.err, HasSubstr("resuming after step")) << again.text();
  EXPECT_EQ(json_lines(run / "metrics.jsonl").size(), steps);
}

struct Published {
  const char* name;
  int64_t parameters;  // spec §3.3
  int vocab;
};
constexpr Published kPublished[] = {{"pr726", 26993756, 1024},  {"pr1072", 27255900, 1024}, {"pr1105-early", 27067484, 1024},
                                    {"pr1105", 29951068, 1024}, {"pr1584", 35944602, 8192}, {"best", 35945671, 8192},
                                    {"record", 35945671, 8192}};

TEST(PublishedRecipe, HasTheParametersOfTheSpec) {
  for (const Published& recipe : kPublished) {
    const json shown = run_json({"recipe", "show", recipe.name});
    EXPECT_EQ(shown["parameters"], recipe.parameters) << recipe.name;
    EXPECT_GT(shown["flops_per_token"].get<double>(), 6.0 * 25e6) << recipe.name;
    EXPECT_EQ(shown["recipe"]["model"]["vocab"], recipe.vocab) << recipe.name;
  }
}

class PublishedRecipeStep : public testing::TestWithParam<Published> {};

TEST_P(PublishedRecipeStep, TrainsOneStepAtReducedWidth) {
  const ScratchFolder scratch;
  make_train_shards(scratch / "data", GetParam().vocab, 4000);
  const json result = run_json({"train",   GetParam().name,
                                "--data",  scratch / "data",
                                "--out",   scratch / "run",
                                "--steps", "1",
                                "--set",   "model.dim=128",
                                "--set",   "model.mlp_hidden=256",
                                "--set",   "model.heads=4",
                                "--set",   "model.kv_heads=2",
                                "--set",   "data.seq_len=32",
                                "--set",   "train.batch_tokens=64",
                                "--set",   "train.micro_batch_tokens=64",
                                "--set",   "train.emulated_world=1"});
  ASSERT_TRUE(result.contains("loss"));
  const double uniform = std::log(static_cast<double>(GetParam().vocab));
  EXPECT_NEAR(result["loss"].get<double>(), uniform, 1.0);
  EXPECT_GT(fs::file_size(scratch / "run" / "averaged.safetensors"), 1000U);
}

INSTANTIATE_TEST_SUITE_P(All, PublishedRecipeStep, testing::ValuesIn(kPublished), [](const auto& test) {
  std::string name = test.param.name;
  std::erase(name, '-');
  return name;
});

class EverySampler : public testing::TestWithParam<const char*> {};

TEST_P(EverySampler, TrainsAndResumes) {
  const ScratchFolder scratch;
  make_train_shards(scratch / "data");
  const std::string sampler = std::string("data.sampler=") + GetParam();
  for (const char* out : {"straight", "resumed"}) {
    Args args = train_smoke(scratch / "data", scratch / out,
                            {"--steps", "8", "--set", sampler, "--set", "train.checkpoint_every=3", "--resume"});
    ASSERT_EQ(run_program(args).status, 0);
    if (std::string(out) == "straight") continue;
    fs::remove(scratch / out / "checkpoint" / "latest.safetensors");  // goes on from the checkpoint after step 6
    fs::remove(scratch / out / "averaged.safetensors");
    const Outcome again = run_program(args);
    ASSERT_EQ(again.status, 0) << again.text();
    EXPECT_THAT(again.err, HasSubstr("resuming after step 6"));
  }
  expect_same(bytes_of_run(scratch / "resumed"), bytes_of_run(scratch / "straight"), sampler);
}

INSTANTIATE_TEST_SUITE_P(All, EverySampler, testing::Values("sequential", "coprime", "shuffled", "docpack"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
