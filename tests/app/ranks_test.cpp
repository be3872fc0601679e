// Runs of several processes: the same bytes as one, across kills of any rank and resumes with another number of them; failures
// end all ranks with one sentence. Needs mpirun and a program with MPI; skipped, saying so, without.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>

#include "app/ranks_world.h"
#include "base/rng.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Args ranks(int count) { return {"mpirun", "--oversubscribe", "--allow-run-as-root", "-n", std::to_string(count)}; }

class Ranks : public RanksWorld {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
    if (!run_json({"doctor"})["mpi"].get<bool>()) GTEST_SKIP() << "this program was built without MPI (libopenmpi-dev)";
    RanksWorld::SetUp();
  }
};

TEST_F(Ranks, AnyNumberOfThemGivesTheSameBytes) {
  const RunBytes want = straight(12);
  for (int count : {1, 2, 4}) {
    const std::string run = "ranks" + std::to_string(count);
    const Outcome made = Child(train(run, 12, {"--json"}), ranks(count)).wait();
    ASSERT_EQ(made.status, 0) << made.text();
    expect_same(bytes_of_run(scratch_ / run), want, std::to_string(count) + " ranks");
    EXPECT_EQ(occurrences(made.out, "\"steps\":12"), 1U) << made.text();  // rank 0 alone prints
    EXPECT_EQ(occurrences(made.err, "step 12/12:"), 1U) << made.text();
  }
}

// In the published precisions too, and a run of one process goes on with two and then with four.
TEST_F(Ranks, PublishedPrecisionsGiveTheSameBytes) {
  const Args precisions{"--set", "optim.momentum_precision=bf16", "--set", "optim.token_precision=bf16",
                        "--set", "optim.exchange_precision=bf16"};
  const auto with = [&](const std::string& run, int steps, Args more = {}) {
    more.insert(more.end(), precisions.begin(), precisions.end());
    return train(run, steps, more);
  };
  const Outcome made = run_program(with("narrow", 20));
  ASSERT_EQ(made.status, 0) << made.text();
  const RunBytes want = bytes_of_run(scratch_ / "narrow");
  for (int count : {2, 4}) {
    const std::string run = "ranks" + std::to_string(count);
    const Outcome shared = Child(with(run, 20), ranks(count)).wait();
    ASSERT_EQ(shared.status, 0) << shared.text();
    expect_same(bytes_of_run(scratch_ / run), want, std::to_string(count) + " ranks");
  }
  Child child(with("signal", 20), ranks(2));
  wait_for_records(child, "signal", 4);
  child.send(SIGUSR1);
  const Outcome stopped = child.wait();
  ASSERT_EQ(stopped.status, 130) << stopped.text();
  const Outcome ended = Child(with("signal", 20, {"--resume"}), ranks(4)).wait();
  ASSERT_EQ(ended.status, 0) << ended.text();
  expect_same(bytes_of_run(scratch_ / "signal"), want, "after the signal");
}

TEST_F(Ranks, KillsOfRandomRanksEndTheRunAndItResumesExactly) {
  constexpr int kSteps = 150, kKills = 10;
  const RunBytes want = straight(kSteps);
  fairway::Rng rng(7);
  int kills = 0;
  for (size_t goal = 0; kills < kKills; ++kills) {
    const int count = kills % 3 == 2 ? 4 : 2;
    Child child(train("killed", kSteps, {"--resume"}), ranks(count));
    goal += 1 + rng.below(8);  // of 175 records: no life gets to the end before it is killed
    wait_for_records(child, "killed", goal);
    ::usleep(static_cast<unsigned>(rng.below(20000)));
    const std::vector<pid_t> all = ranks_of(child, static_cast<size_t>(count));  // records of the life before may have sufficed
    ASSERT_EQ(all.size(), static_cast<size_t>(count)) << child.wait().text();
    ::kill(all[rng.below(all.size())], SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    const Outcome outcome = child.wait();
    EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(30));
    EXPECT_NE(outcome.status, 0) << outcome.text();
    for (const pid_t pid : all) EXPECT_TRUE(ended(pid)) << "rank with pid " << pid << " is still there";
  }
  const Outcome ended = run_program(train("killed", kSteps, {"--resume"}));
  ASSERT_EQ(ended.status, 0) << ended.text();
  expect_same(bytes_of_run(scratch_ / "killed"), want, "after the kills");
}

TEST_F(Ranks, AStoppedRankEndsTheRun) {
  Child child(train("stopped", 100000), ranks(2));
  wait_for_records(child, "stopped", 4);
  const std::vector<pid_t> all = ranks_of(child, 2);
  ASSERT_EQ(all.size(), 2U) << child.wait().text();
  ::kill(all[1], SIGSTOP);
  const auto stopped = std::chrono::steady_clock::now();
  const Outcome outcome = child.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, std::chrono::seconds(30));
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_EQ(occurrences(outcome.err, "rank 1 does not answer"), 1U) << outcome.text();
}

TEST_F(Ranks, AStopSignalSavesAndAnotherNumberGoesOn) {
  const RunBytes want = straight(40);
  Child child(train("signal", 40), ranks(2));
  wait_for_records(child, "signal", 5);
  child.send(SIGUSR1);  // mpirun hands it on to the ranks
  const Outcome stopped = child.wait();
  ASSERT_EQ(stopped.status, 130) << stopped.text();
  EXPECT_EQ(occurrences(stopped.err, "saved after step"), 1U) << stopped.text();
  const Outcome ended = Child(train("signal", 40, {"--resume"}), ranks(4)).wait();
  ASSERT_EQ(ended.status, 0) << ended.text();
  expect_same(bytes_of_run(scratch_ / "signal"), want, "after the signal");
}

// Slices of the gradient set out before the backward pass ends, and the timeline shows it: four ranks of one
// emulated rank each.
TEST_F(Ranks, ATimelineShowsExchangesBesideTheBackwardPass) {
  const std::string file = scratch_ / "trace.json";
  const Outcome made = Child(train("traced", 8, {"--profile", file}), ranks(4)).wait();
  ASSERT_EQ(made.status, 0) << made.text();
  expect_same(bytes_of_run(scratch_ / "traced"), straight(8), "while a timeline is recorded");
  const auto trace = nlohmann::json::parse(contents(file));
  std::map<int, size_t> beside, passes;
  for (const auto& slice : trace["traceEvents"]) {
    if (slice["ph"] != "X" || !slice["name"].get<std::string>().starts_with("slice bank.")) continue;
    for (const auto& work : trace["traceEvents"]) {
      if (work["ph"] != "X" || work["name"] != "forward and backward" || work["pid"] != slice["pid"]) continue;
      if (slice["ts"] > work["ts"] && slice["ts"] < work["ts"].get<double>() + work["dur"].get<double>())
        ++beside[slice["pid"].get<int>()];
    }
  }
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["name"] == "forward and backward") ++passes[event["pid"].get<int>()];
  ASSERT_EQ(passes.size(), 4U) << "each rank has its lanes";
  EXPECT_TRUE(std::any_of(trace["ops"].begin(), trace["ops"].end(), [](const auto& line) {
    return line["op"] == "attention'";
  })) << "and the file tells where a pass spends its time";
  for (const auto& [rank, count] : passes) {
    EXPECT_EQ(count, 5U) << "steps 3 to 7 of rank " << rank;
    EXPECT_GE(beside[rank], 5U * 20) << "slices that set out during the pass, rank " << rank;
  }
}

TEST_F(Ranks, ArtifactsDoNotDependOnThem) {
  const std::string run = scratch_ / "straight", file = scratch_ / "m.fwy";
  straight(6);
  const Args calibrated{"--set", "quant.rule=gptq", "--tokens", "1024", "--out", file, "--json"};
  std::vector<Args> commands{{"quantize", run},
                             {"quantize", run, "--calibration", "train", "--data", scratch_ / "data"},
                             {"pack", run, "--budget", "40000"}};
  for (Args& command : commands) {
    command.insert(command.end(), calibrated.begin(), calibrated.end());
    std::string want, told;
    for (int count : {1, 2, 4}) {
      fs::remove(file);
      const Outcome made = Child(command, ranks(count)).wait();
      ASSERT_EQ(made.status, 0) << made.text();
      const auto result = nlohmann::json::parse(made.out, nullptr, false);
      ASSERT_TRUE(result.is_object()) << "rank 0 alone prints: " << made.text();
      if (want.empty()) {
        want = contents(file);
        told = result["tensors"].dump();
        ASSERT_FALSE(want.empty());
      }
      EXPECT_TRUE(contents(file) == want) << command[0] << " on " << count << " ranks gives another file";
      EXPECT_EQ(result["tensors"].dump(), told) << count;
    }
  }
}

TEST_F(Ranks, ScoresDoNotDependOnThem) {
  const std::string run = scratch_ / "straight";
  straight(6);
  const Args extra{"--data", scratch_ / "data", "--stride", "16", "--json", "--out", scratch_ / "scored"};
  const std::vector<Args> modes{
      {"plain"},
      {"sliding"},
      {"slot"},
      {"slot", "--set", "score.slot.carried=true"},
      {"sliding+tilt"},
      {"ttt", "--set", "score.ttt.chunk=512"},
      {"lora-ttt"},
      {"lora-ttt", "--set", "score.lora.phases=1", "--set", "score.lora.phase_documents=2", "--set",
       "score.lora.phase_chunk=256"},
      {"lora-ttt+tilt", "--set", "score.lora.phases=1", "--set", "score.lora.phase_documents=2", "--set",
       "score.lora.phase_chunk=256", "--set", "score.lora.batch=3", "--set", "score.ngram.order=4"},
      {"slot-published"}};
  for (const Args& mode : modes) {
    Args command{"score", run, "--mode"};
    command.insert(command.end(), mode.begin(), mode.end());
    command.insert(command.end(), extra.begin(), extra.end());
    std::string want;
    for (int count : {1, 2, 4}) {
      const Outcome made = Child(command, ranks(count)).wait();
      ASSERT_EQ(made.status, 0) << made.text();
      auto result = nlohmann::json::parse(made.out, nullptr, false);
      ASSERT_TRUE(result.is_object()) << "rank 0 alone prints: " << made.text();
      for (const char* timed : {"seconds", "forward", "learning"}) result.erase(timed);
      auto receipt = nlohmann::json::parse(contents(scratch_ / "scored" / "receipt.json"));
      for (const char* timed : {"seconds", "sha256", "score"}) receipt.erase(timed);
      EXPECT_EQ(receipt["machine"]["ranks"], count);
      receipt["machine"].erase("ranks");
      const std::string told = result.dump() + receipt.dump();
      if (want.empty()) want = told;
      EXPECT_EQ(told, want) << testing::PrintToString(mode) << " on " << count << " ranks";
    }
  }
}

// Rank 1 alone is given a file that does not exist.
TEST_F(Ranks, OneRanksErrorEndsScoringToo) {
  straight(3);
  const auto score = [&](const std::string& from) {
    return Args{"score", from, "--data", scratch_ / "data", "--mode", "plain"};
  };
  Args launcher = ranks(1);
  launcher.push_back(FAIRWAY_PROGRAM);
  const Args good = score(scratch_ / "straight");
  launcher.insert(launcher.end(), good.begin(), good.end());
  launcher.insert(launcher.end(), {":", "-n", "1"});
  const Outcome outcome = Child(score(scratch_ / "absent"), launcher).wait();
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_EQ(occurrences(outcome.err, "fairway: "), 1U) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("absent"));
}

TEST_F(Ranks, BadInputIsToldOnce) {
  const Outcome odd = Child(train("odd", 5), ranks(3)).wait();
  EXPECT_EQ(odd.status, 2) << odd.text();
  EXPECT_EQ(occurrences(odd.err, "fairway: "), 1U) << odd.text();
  EXPECT_THAT(odd.err, HasSubstr("3 processes cannot share train.emulated_world = 4"));
  const Outcome unknown = Child({"train", "smoke", "--no-such-flag"}, ranks(2)).wait();
  EXPECT_EQ(unknown.status, 2) << unknown.text();
  EXPECT_EQ(occurrences(unknown.err, "--no-such-flag"), 1U) << unknown.text();
  const Outcome other = Child({"recipes"}, ranks(2)).wait();
  EXPECT_EQ(other.status, 2) << other.text();
  EXPECT_EQ(occurrences(other.err, "fairway recipes runs in one process only"), 1U) << other.text();
}

// Rank 1 alone is given a recipe that does not exist.
TEST_F(Ranks, OneRanksErrorEndsAllWithItsSentence) {
  Args launcher = ranks(1);
  launcher.push_back(FAIRWAY_PROGRAM);
  const Args good = train("lone", 100000);
  launcher.insert(launcher.end(), good.begin(), good.end());
  launcher.insert(launcher.end(), {":", "-n", "1"});
  Args bad = train("lone", 100000);
  bad[1] = "no-such-recipe";
  const Outcome outcome = Child(bad, launcher).wait();
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_EQ(occurrences(outcome.err, "fairway: "), 1U) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("no-such-recipe"));
}

TEST_F(Ranks, TorchrunsVariablesAreRefusedWithAWayOut) {
  setenv("WORLD_SIZE", "2", 1);
  setenv("RANK", "0", 1);
  const Outcome outcome = run_program(train("torchrun", 5));
  unsetenv("WORLD_SIZE");
  unsetenv("RANK");
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("WORLD_SIZE = 2"));
  EXPECT_THAT(outcome.err, HasSubstr("mpirun -n 2"));
}

}  // namespace
