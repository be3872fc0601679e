// Same seed, same bytes: from run to run, for any number of threads, and across kills and signals.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "app/world.h"
#include "base/rng.h"

namespace {

namespace fs = std::filesystem;

const Args kShort{"--steps", "12", "--set", "train.checkpoint_every=3", "--set", "train.validate_every=6"};

Args with(Args args, const Args& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Repeat, SameBytesAgainAndForAnyNumberOfThreads) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Path first = scratch / "first";
  Outcome made = run_program(train_smoke(scratch / "data", first, kShort));
  ASSERT_EQ(made.status, 0) << made.text();
  const RunBytes want = bytes_of_run(first);
  EXPECT_EQ(json_lines(first / "metrics.jsonl").size(), 12U + 2);  // a validation on the way, one at the end
  for (const char* threads : {"1", "2", "3"}) {
    const Path run = scratch / (std::string("threads") + threads);
    made = run_program(with(train_smoke(scratch / "data", run, kShort), {"--threads", threads}));
    ASSERT_EQ(made.status, 0) << made.text();
    expect_same(bytes_of_run(run), want, std::string("--threads ") + threads);
  }
}

TEST(Repeat, AnotherSeedGivesAnotherRun) {
  const ScratchFolder scratch;
  make_train_shards(scratch / "data");
  for (const char* seed : {"1", "2"})
    ASSERT_EQ(run_program(train_smoke(scratch / "data", scratch / seed, {"--steps", "2", "--seed", seed})).status, 0);
  EXPECT_NE(contents(scratch / "1" / "metrics.jsonl"), contents(scratch / "2" / "metrics.jsonl"));
}

// Waits until the run has at least `steps` records, then a little more.
void wait_for_records(Child& child, const Path& run, size_t steps, unsigned microseconds) {
  while (child.running()) {
    std::ifstream in(run / "metrics.jsonl");
    if (static_cast<size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n')) >= steps) break;
    ::usleep(500);
  }
  ::usleep(microseconds);
}

TEST(Resume, AfterTwentyKillsEqualsAnUninterruptedRun) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Args length{"--steps",   "240", "--set",   "train.checkpoint_every=2", "--set", "train.validate_every=40",
                    "--threads", "1",   "--resume"};
  const Path straight = scratch / "straight", killed = scratch / "killed";
  Outcome made = run_program(train_smoke(scratch / "data", straight, length));
  ASSERT_EQ(made.status, 0) << made.text();
  fairway::Rng rng(20);
  int kills = 0;
  for (size_t goal = 0; kills < 20; ++kills) {
    Child child(train_smoke(scratch / "data", killed, length));
    goal += 1 + rng.below(16);  // so that every life gets further on the whole, and the first may die before a checkpoint
    wait_for_records(child, killed, goal, static_cast<unsigned>(rng.below(6000)));
    child.send(SIGKILL);
    const Outcome outcome = child.wait();
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.signal, SIGKILL) << outcome.text();
  }
  EXPECT_EQ(kills, 20) << "the run ended before it was killed often enough";
  made = run_program(train_smoke(scratch / "data", killed, length));
  ASSERT_EQ(made.status, 0) << made.text();
  expect_same(bytes_of_run(killed), bytes_of_run(straight), "after the kills");
  EXPECT_FALSE(fs::exists(killed / "checkpoint" / "next.safetensors"));
}

TEST(Resume, OfAFinishedRunChangesNothing) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  ASSERT_EQ(run_program(train_smoke(scratch / "data", scratch / "run", kShort)).status, 0);
  EXPECT_THAT(contents(scratch / "run" / "machine.json"), testing::HasSubstr("\"cpu\""));
  const RunBytes want = bytes_of_run(scratch / "run");
  const Outcome again = run_program(with(train_smoke(scratch / "data", scratch / "run", kShort), {"--resume"}));
  EXPECT_EQ(again.status, 0) << again.text();
  expect_same(bytes_of_run(scratch / "run"), want, "resumed once more");
}

// The switch is told after the checkpoint of its step, so the resumed run tells it again; the log must not hold it twice.
TEST(Resume, AtTheStepOfAStageSwitchTellsItOnce) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Args length{"--steps", "12", "--set", "train.checkpoint_every=6", "--set", "model.loop.at_fraction=0.5"};
  ASSERT_EQ(run_program(train_smoke(scratch / "data", scratch / "run", length)).status, 0);
  const RunBytes want = bytes_of_run(scratch / "run");
  ASSERT_NE(want.log.find("layer_loop:enabled step:6"), std::string::npos) << want.log;
  fs::remove(scratch / "run" / "checkpoint" / "latest.safetensors");
  const Outcome again = run_program(with(train_smoke(scratch / "data", scratch / "run", length), {"--resume"}));
  ASSERT_EQ(again.status, 0) << again.text();
  EXPECT_NE(again.err.find("resuming after step 6"), std::string::npos) << again.text();
  expect_same(bytes_of_run(scratch / "run"), want, "resumed at the switch");
}

TEST(Resume, AfterAStopSignalEqualsAnUninterruptedRun) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  // A validation after every step: one of them is due at the step the signal meets.
  const Args length{"--steps",   "24", "--set",   "train.validate_every=1", "--set", "train.checkpoint_seconds=0",
                    "--threads", "1",  "--resume"};
  ASSERT_EQ(run_program(train_smoke(scratch / "data", scratch / "straight", length)).status, 0);
  const RunBytes want = bytes_of_run(scratch / "straight");
  for (int signal : {SIGINT, SIGTERM}) {
    const Path run = scratch / std::to_string(signal);
    Child child(train_smoke(scratch / "data", run, length));
    wait_for_records(child, run, 8, 0);
    child.send(signal);
    const Outcome stopped = child.wait();
    ASSERT_EQ(stopped.status, 130) << stopped.text();
    EXPECT_NE(stopped.err.find("saved after step"), std::string::npos) << stopped.text();
    EXPECT_TRUE(fs::exists(run / "checkpoint" / "latest.safetensors"));
    EXPECT_FALSE(fs::exists(run / "averaged.safetensors"));
    const Outcome ended = run_program(train_smoke(scratch / "data", run, length));
    ASSERT_EQ(ended.status, 0) << ended.text();
    expect_same(bytes_of_run(run), want, "signal " + std::to_string(signal));
  }
}

TEST(Resume, ADamagedCheckpointFallsBackToThePrevious) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Path run = scratch / "run", latest = run / "checkpoint" / "latest.safetensors";
  ASSERT_EQ(run_program(train_smoke(scratch / "data", run, kShort)).status, 0);
  const RunBytes want = bytes_of_run(run);
  std::string flipped = want.checkpoint;
  flipped[flipped.size() / 2] ^= 1;
  for (const std::string& damaged : {flipped, want.checkpoint.substr(0, want.checkpoint.size() / 2), std::string()}) {
    put_file(latest, damaged);
    const Outcome outcome = run_program(with(train_smoke(scratch / "data", run, kShort), {"--resume"}));
    ASSERT_EQ(outcome.status, 0) << outcome.text();
    EXPECT_NE(outcome.err.find("latest.safetensors"), std::string::npos) << outcome.text();
    EXPECT_NE(outcome.err.find("continuing from"), std::string::npos) << outcome.text();
    expect_same(bytes_of_run(run), want, "from the previous checkpoint");
  }
}

}  // namespace
