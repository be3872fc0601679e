// `fairway run` as a user runs it: its fields, going on after kills at several moments, several seeds, a sweep, and the
// submission that three real runs make.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

Args run_smoke(const Path& data, const Path& out, const Args& more = {}) {
  Args args{"run", "smoke", "--data", data.string(), "--out", out.string(), "--set", "train.checkpoint_every=4"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Run, GoesFromRecipeToReport) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const json result = run_json(run_smoke(scratch / "data", scratch / "run", {"--steps", "8", "--seed", "5"}));
  for (const char* field : {"steps", "step_ms", "train_seconds", "tokens_per_second", "speed_of_light", "val_loss", "val_bpb",
                            "artifact_bytes", "score_bpb"})
    EXPECT_TRUE(result.contains(field) && result[field].is_number()) << field;
  for (const char* phase : {"startup", "train", "quantize", "pack", "score"})
    EXPECT_TRUE(result["seconds"].contains(phase)) << phase;
  EXPECT_EQ(result["seed"], 5);
  EXPECT_EQ(result["legal"], true);
  for (const char* file : {"recipe.toml", "metrics.jsonl", "train.log", "checkpoint", "averaged.safetensors", "model.fwy",
                           "score.json", "receipt.json", "audit.json", "samples.json", "machine.json", "report.html"})
    EXPECT_TRUE(fs::exists(scratch / "run" / file)) << file;
  EXPECT_THAT(contents(scratch / "run" / "train.log"), HasSubstr("final_int6_sliding_window_exact val_loss:"));
  EXPECT_EQ(run_program(run_smoke(scratch / "data", scratch / "run", {"--steps", "8", "--seed", "5"})).status, 2);
  const Outcome other = run_program(run_smoke(scratch / "data", scratch / "run", {"--steps", "9", "--resume"}));
  EXPECT_EQ(other.status, 2) << other.text();
}

void wait_for(const Path& path, Child& child) {
  while (child.running() && !fs::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST(Run, GoesOnAfterAKillAtAnyMoment) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Args length{"--steps", "8", "--resume"};
  ASSERT_EQ(run_program(run_smoke(scratch / "data", scratch / "whole", length)).status, 0);
  const Path run = scratch / "run";
  for (const char* moment : {"recipe.toml", "checkpoint/latest.safetensors", "averaged.safetensors", "model.fwy",
                             "score_plain.json", "receipt.json", "audit.json", "samples.json"}) {
    Child child(run_smoke(scratch / "data", run, length));
    wait_for(run / moment, child);
    child.send(SIGKILL);
    child.wait();
  }
  const Outcome last = run_program(run_smoke(scratch / "data", run, length));
  ASSERT_EQ(last.status, 0) << last.text();
  EXPECT_THAT(last.err, HasSubstr("train: done before"));
  expect_same(bytes_of_run(run), bytes_of_run(scratch / "whole"), "killed eight times");
  EXPECT_TRUE(contents(run / "model.fwy") == contents(scratch / "whole" / "model.fwy"));
  const json have = json::parse(contents(run / "score.json")), want = json::parse(contents(scratch / "whole" / "score.json"));
  EXPECT_EQ(have["val_bpb"], want["val_bpb"]);
}

TEST(Run, AnInterruptedRunSavesAndEndsWith130) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  Child child(run_smoke(scratch / "data", scratch / "run", {"--steps", "100000"}));
  wait_for(scratch / "run" / "checkpoint" / "latest.safetensors", child);
  child.send(SIGTERM);
  const Outcome outcome = child.wait();
  EXPECT_EQ(outcome.status, 130) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("go on with --resume"));
}

TEST(Run, SweepsBySuccessiveHalving) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Args sweep{"--steps", "8", "--sweep", "optim.matrix.lr=0.001,0.02", "--sweep", "optim.token.lr=0.001,0.02"};
  const json result = run_json(run_smoke(scratch / "data", scratch / "sweep", sweep));
  EXPECT_EQ(result["trials"].size(), 4U);
  EXPECT_EQ(result["results"].size(), 4U + 2U);
  EXPECT_TRUE(fs::exists(Path(result["best"]["path"].get<std::string>()) / "report.html"));
}

TEST(Run, RefusesWhatCannotWork) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  make_train_shards(scratch / "no_validation");
  const Path data = scratch / "data", out = scratch / "run";
  for (const Args& more : {Args{"--seeds", "1,1"}, Args{"--seeds", "1,2", "--seed", "3"}, Args{"--sweep", "optim.clip"},
                           Args{"--sweep", "optim.clip=1,2", "--seeds", "1,2"}, Args{"--against", "pr1019"},
                           Args{"--set", "score.context=4096"}, Args{"--steps", "4", "--seconds", "4"}}) {
    const Outcome outcome = run_program(run_smoke(data, out, more));
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_FALSE(fs::exists(out / "averaged.safetensors")) << outcome.text();
  }
  EXPECT_EQ(run_program(run_smoke(scratch / "no_validation", out)).status, 2);
}

}  // namespace
