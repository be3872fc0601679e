// --ranks and --gpus: the program starts its ranks itself. The same bytes as one process; signals reach all of them; one that
// dies ends the others and is named; none outlives the process that a user started.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "app/ranks_world.h"

namespace {

using testing::HasSubstr;

class OwnRanks : public RanksWorld {
 protected:
  static Args by(int ranks, Args args) {
    args.insert(args.end(), {"--ranks", std::to_string(ranks)});
    return args;
  }
};

TEST_F(OwnRanks, AnyNumberOfThemGivesTheSameBytes) {
  const RunBytes want = straight(12);
  for (int count : {1, 2, 4}) {
    const std::string run = "ranks" + std::to_string(count);
    const Outcome made = run_program(by(count, train(run, 12, {"--json"})));
    ASSERT_EQ(made.status, 0) << made.text();
    expect_same(bytes_of_run(scratch_ / run), want, std::to_string(count) + " ranks");
    EXPECT_EQ(occurrences(made.out, "\"steps\":12"), 1U) << "rank 0 alone prints: " << made.text();
    EXPECT_EQ(occurrences(made.err, "step 12/12:"), 1U) << made.text();
    EXPECT_EQ(nlohmann::json::parse(contents(scratch_ / run / "machine.json"))["launch"]["ranks"], count);
  }
}

TEST_F(OwnRanks, AWholeRunIsTheSame) {
  std::string artifact, score;
  for (int count : {1, 2}) {
    Args args = train("run" + std::to_string(count), 8, {"--as-published", "--json"});
    args[0] = "run";
    const Outcome made = run_program(by(count, args));
    ASSERT_EQ(made.status, 0) << made.text();
    const auto result = nlohmann::json::parse(made.out, nullptr, false);
    ASSERT_TRUE(result.is_object()) << made.text();
    if (count == 1) {
      artifact = contents(scratch_ / "run1/model.fwy");
      score = result["score_bpb"].dump();
      ASSERT_FALSE(artifact.empty());
    }
    EXPECT_TRUE(contents(scratch_ / ("run" + std::to_string(count)) / "model.fwy") == artifact) << count << " ranks";
    EXPECT_EQ(result["score_bpb"].dump(), score);
  }
}

TEST_F(OwnRanks, ScoresAndArtifactsDoNotDependOnThem) {
  straight(6);
  const std::string run = scratch_ / "straight", file = scratch_ / "m.fwy";
  for (const Args& command : {Args{"score", run, "--data", scratch_ / "data", "--mode", "sliding", "--stride", "16"},
                              Args{"pack", run, "--budget", "40000", "--tokens", "1024", "--out", file},
                              Args{"pack", run, "--budget", "40000", "--tokens", "1024", "--set", "quant.rule=gptq", "--set",
                                   "quant.two_sided=true", "--out", file},
                              Args{"quantize", run, "--set", "quant.rule=gptq", "--tokens", "1024", "--out", file}}) {
    std::string want;
    for (int count : {1, 2}) {
      auto result = run_json(by(count, command));
      for (const char* timed : {"seconds", "forward", "learning"}) result.erase(timed);
      const std::string told = command[0] == "score" ? result.dump() : contents(file);
      ASSERT_FALSE(told.empty());
      if (want.empty()) want = told;
      EXPECT_TRUE(told == want) << command[0] << " on " << count << " ranks: " << result.dump();
    }
  }
}

TEST_F(OwnRanks, SignalsSaveAndAnotherNumberGoesOn) {
  const RunBytes want = straight(60);
  int count = 2;
  size_t goal = 5;
  for (const int signal : {SIGINT, SIGTERM}) {
    Args args = by(count, train("signal", 60));
    if (signal != SIGINT) args.push_back("--resume");
    Child child(args);
    wait_for_records(child, "signal", goal);
    const std::vector<pid_t> all = ranks_of(child, static_cast<size_t>(count));
    child.send(signal);
    const Outcome stopped = child.wait();
    ASSERT_EQ(stopped.status, 130) << stopped.text();
    EXPECT_EQ(occurrences(stopped.err, "saved after step"), 1U) << stopped.text();
    EXPECT_EQ(occurrences(stopped.err, "to go on: "), 1U) << stopped.text();
    EXPECT_THAT(stopped.err, HasSubstr("--ranks " + std::to_string(count)));
    for (const pid_t pid : all) EXPECT_TRUE(ended(pid)) << pid;
    count = 4;
    goal = records("signal") + 4;
  }
  const Outcome done = run_program(train("signal", 60, {"--resume"}));
  ASSERT_EQ(done.status, 0) << done.text();
  expect_same(bytes_of_run(scratch_ / "signal"), want, "after the signals");
}

TEST_F(OwnRanks, OneThatIsKilledEndsTheOthersAndIsNamed) {
  Child child(by(4, train("killed", 100000)));
  wait_for_records(child, "killed", 4);
  const std::vector<pid_t> all = ranks_of(child, 4);
  ASSERT_EQ(all.size(), 4U) << child.wait().text();
  ::kill(all[2], SIGKILL);
  const Outcome outcome = child.wait();
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_EQ(occurrences(outcome.err, "fairway: rank 2 (process " + std::to_string(all[2]) + ") was killed by signal 9"), 1U)
      << outcome.text();
  for (const pid_t pid : all) EXPECT_TRUE(ended(pid)) << "rank with pid " << pid << " is still there";
}

TEST_F(OwnRanks, NoneOutlivesTheProcessThatStartedThem) {
  Child child(by(2, train("orphans", 100000)));
  wait_for_records(child, "orphans", 4);
  const std::vector<pid_t> all = ranks_of(child, 2);
  ASSERT_EQ(all.size(), 2U) << child.wait().text();
  child.send(SIGKILL);
  EXPECT_EQ(child.wait().signal, SIGKILL);
  for (const pid_t pid : all) EXPECT_TRUE(ended(pid)) << "rank with pid " << pid << " is still there";
}

TEST_F(OwnRanks, OneThatStopsEndsTheRun) {
  Child child(by(2, train("stopped", 100000)));
  wait_for_records(child, "stopped", 4);
  const std::vector<pid_t> all = ranks_of(child, 2);
  ASSERT_EQ(all.size(), 2U) << child.wait().text();
  ::kill(all[1], SIGSTOP);
  const Outcome outcome = child.wait();
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_EQ(occurrences(outcome.err, "rank 1 does not answer"), 1U) << outcome.text();
  for (const pid_t pid : all) EXPECT_TRUE(ended(pid)) << "rank with pid " << pid << " is still there";
}

TEST_F(OwnRanks, BadInputIsToldOnce) {
  const auto refused = [](const Args& args, const std::string& sentence) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_EQ(occurrences(outcome.err, "fairway: "), 1U) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr(sentence));
    return outcome;
  };
  refused(by(3, train("odd", 5)), "3 processes cannot share train.emulated_world = 4");
  const Outcome told = refused(by(2, train("json", 5, {"--json", "--set", "model.no_such=1"})), "no_such");
  EXPECT_EQ(nlohmann::json::parse(told.out, nullptr, false)["status"], 2) << told.text();
  for (const char* count : {"0", "-1", "65", "two"}) refused(train("many", 5, {"--ranks", count}), "--ranks");
  refused(by(2, train("both", 5, {"--gpus", "2"})), "--gpus and --ranks: give only one of them");
  refused({"recipes", "--ranks", "2"}, "--ranks: unknown");
  straight(3);
  refused(by(2, {"score", scratch_ / "straight", "--text", "-"}), "--text -: standard input reaches one of the 2 ranks only");
  Args seeds = by(2, train("seeds", 5, {"--seeds", "1,2"}));
  seeds[0] = "run";
  refused(seeds, "2 ranks: --seeds and --sweep run in one process only");
}

TEST_F(OwnRanks, GpusThatAreNotThereAreRefused) {
  const auto gpus = run_json({"doctor"})["gpus"].get<int>();
  const Outcome outcome = run_program(train("gpus", 5, {"--gpus", std::to_string(gpus + 1)}));
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("--gpus " + std::to_string(gpus + 1) + ": "));
  EXPECT_THAT(outcome.err, HasSubstr("--ranks " + std::to_string(gpus + 1))) << "and what works";
}

TEST_F(OwnRanks, OneLauncherIsEnough) {
  setenv("WORLD_SIZE", "2", 1);
  setenv("RANK", "0", 1);
  const Outcome outcome = run_program(by(2, train("torchrun", 5)));
  unsetenv("WORLD_SIZE");
  unsetenv("RANK");
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("--ranks 2: WORLD_SIZE = 2"));
  setenv("FAIRWAY_RANK_COUNT", "2", 1);
  setenv("FAIRWAY_RANK", "0", 1);
  const Outcome alone = run_program(train("by hand", 5));
  unsetenv("FAIRWAY_RANK_COUNT");
  unsetenv("FAIRWAY_RANK");
  EXPECT_EQ(alone.status, 2) << alone.text();
  EXPECT_THAT(alone.err, HasSubstr("only fairway --ranks N sets these variables"));
}

}  // namespace
