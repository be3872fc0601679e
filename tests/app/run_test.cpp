// `fairway run` as a user runs it: its fields, going on after kills at several moments, several seeds, a sweep, and the
// submission that three real runs make.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "app/world.h"
#include "base/sha256.h"

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
  const json samples = json::parse(contents(scratch / "run" / "samples.json"));
  ASSERT_GE(samples.size(), 2U);  // beginnings from the validation text, and the default prompt
  for (const json& sample : samples) {
    EXPECT_TRUE(sample["text"].is_string() && sample["float"].is_string()) << sample;
    EXPECT_EQ(sample.contains("truth"), &sample != &samples.back()) << sample;
  }
  EXPECT_EQ(json::parse(contents(scratch / "run" / "run.json"))["plan"]["phases"][0]["name"], "train");
  EXPECT_THAT(contents(scratch / "run" / "train.log"), HasSubstr("final_int6_sliding_window_exact val_loss:"));
  EXPECT_EQ(run_program(run_smoke(scratch / "data", scratch / "run", {"--steps", "8", "--seed", "5"})).status, 2);
  const Outcome other = run_program(run_smoke(scratch / "data", scratch / "run", {"--steps", "9", "--resume"}));
  EXPECT_EQ(other.status, 2) << other.text();
  const auto packed = [&] { return json::parse(contents(scratch / "run" / "pack.json")); };
  EXPECT_EQ(packed()["method"], "allocator");
  EXPECT_EQ(packed()["damage_estimate"], result["damage_estimate"]);
  EXPECT_EQ(packed()["divergence"], result["divergence"]);
  run_json(run_smoke(scratch / "data", scratch / "run", {"--steps", "8", "--seed", "5", "--resume", "--as-published"}));
  EXPECT_EQ(packed()["method"], "recipe");
}

TEST(Run, ScoresWindowsBesideAModeThatAdapts) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const json result = run_json(run_smoke(
      scratch / "data", scratch / "run",
      {"--steps", "4", "--set", "score.mode=lora-ttt+tilt", "--set", "score.lora.phases=2", "--set", "score.lora.rank=4"}));
  EXPECT_EQ(result["score_mode"], "lora-ttt+tilt");
  const json score = json::parse(contents(scratch / "run" / "score.json"));
  EXPECT_EQ(score["modes"], (json{"lora-ttt", "tilt"}));
  EXPECT_TRUE(score["gains"]["tilt"].is_number());
  EXPECT_THAT(contents(scratch / "run" / "train.log"), HasSubstr("quantized_ttt_phased val_loss:"));
  EXPECT_EQ(result["legal"], true);
  const auto bpb = [&](const char* file) { return json::parse(contents(scratch / "run" / file))["val_bpb"]; };
  EXPECT_EQ(result["roundtrip_bpb"], bpb("score_plain.json"));
  EXPECT_EQ(result["sliding_bpb"], bpb("score_sliding.json"));
  EXPECT_EQ(result["score_bpb"], bpb("score.json"));
  EXPECT_THAT(contents(scratch / "run" / "train.log"), HasSubstr("sliding_window_exact"));
  EXPECT_THAT(contents(scratch / "run" / "audit.json"), HasSubstr("through a phase"));
}

TEST(Run, TheLogTellsEveryTenthChunkThatWasLearned) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  run_json(
      run_smoke(scratch / "data", scratch / "run", {"--steps", "2", "--set", "score.mode=ttt", "--set", "score.ttt.chunk=64"}));
  const json marks = json::parse(contents(scratch / "run" / "score.json"))["marks"];
  ASSERT_FALSE(marks.empty());
  EXPECT_GE(marks[0]["targets"], 640);
  EXPECT_THAT(
      contents(scratch / "run" / "train.log"),
      testing::ContainsRegex("\nttt_sliding:start [^\n]*\n  ttt_chunk \\[1[0-9]/[0-9]+\\] bpb=[0-9.]+ time=[0-9.]+s\n"));
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
  EXPECT_THAT(outcome.err, HasSubstr("continue with --resume"));
}

TEST(Run, SweepsBySuccessiveHalving) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Args sweep{"--steps", "8", "--sweep", "optim.matrix.lr=0.001,0.02", "--sweep", "optim.token.lr=0.001,0.02"};
  const json result = run_json(run_smoke(scratch / "data", scratch / "sweep", sweep));
  EXPECT_EQ(result["trials"].size(), 4U);
  EXPECT_EQ(result["results"].size(), 4U + 2U);
  EXPECT_TRUE(fs::exists(Path(result["best"]["path"].get<std::string>()) / "report.html"));
  EXPECT_THAT(contents(scratch / "sweep" / "report.html"), HasSubstr("\"page\":\"sweep\""));
}

TEST(Run, SeedsLeaveAPageAndAreComparedOnOne) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Path a = scratch / "a", b = scratch / "b";
  run_json(run_smoke(scratch / "data", a, {"--steps", "4", "--seeds", "1,2"}));
  run_json(run_smoke(scratch / "data", b, {"--steps", "4", "--seeds", "1,2", "--set", "optim.matrix.lr=0.001"}));
  EXPECT_THAT(contents(a / "report.html"), testing::ContainsRegex("\"page\":\"seeds\".*\"low\":[0-9.]+,\"high\":[0-9.]+"));
  const json made = run_json({"report", a, b, "--out", scratch / "both.html", "--csv", scratch / "csv"});
  const std::string page = contents(scratch / "both.html");
  EXPECT_THAT(page, HasSubstr("\"baseline\":\"a\""));
  EXPECT_THAT(page, testing::ContainsRegex("\"by\":\"documents\",\"delta_bpb\":-?[0-9.e-]+,\"low\":"));
  EXPECT_THAT(page, testing::ContainsRegex("\"by\":\"seeds\",\"delta_bpb\":-?[0-9.e-]+,\"low\":"));
  EXPECT_THAT(page, HasSubstr("{\"key\":\"optim.matrix.lr\",\"values\":[0.02,0.001]}"));
  EXPECT_EQ(made["csv"].size(), 5U);  // four runs and runs.csv
  EXPECT_THAT(contents(scratch / "csv" / "runs.csv"), HasSubstr("\na-seed1,1,"));
}

// runs.csv has a line for each run, and is nobody's steps.
TEST(Run, OfTheNameRunsKeepsItsStepsInCsv) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  ASSERT_EQ(run_program(train_smoke(scratch / "data", scratch / "runs", {"--steps", "2", "--quiet"})).status, 0);
  run_json({"report", scratch / "runs", "--out", scratch / "report.html", "--csv", scratch / "csv"});
  EXPECT_THAT(contents(scratch / "csv" / "runs-2.csv"), HasSubstr("step,"));
  EXPECT_THAT(contents(scratch / "csv" / "runs.csv"), HasSubstr("\nruns-2,"));
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

class ThreeRuns : public testing::Test {
 protected:
  ThreeRuns() {
    make_data(scratch_ / "data");
    seeds_ =
        run_json(run_smoke(scratch_ / "data", scratch_ / "seeds", {"--steps", "8", "--seeds", "1,2,3", "--against", "pr1019"}));
  }
  Args submit(const Args& runs, const std::string& out) const {
    Args args{"submission"};
    args.insert(args.end(), runs.begin(), runs.end());
    const Args more{"--out", (scratch_ / out).string(), "--name", "Tiny", "--author", "A", "--github-id", "a"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  void expect_checked_by_scoring() const;
  std::string seed(int number) const { return (scratch_ / "seeds" / ("seed" + std::to_string(number))).string(); }

  ScratchFolder scratch_;
  json seeds_;
};

// With artifacts in the folder the check scores windows of them.
void ThreeRuns::expect_checked_by_scoring() const {
  Args args = submit({(scratch_ / "seeds").string()}, "shipped");
  args.emplace_back("--artifacts");
  ASSERT_EQ(run_program(args).status, 0);
  const Path record = scratch_ / "shipped", receipt = record / "receipt_seed2.json";
  const Args check{"submission", "--check", record.string(), "--data", (scratch_ / "data").string()};
  const Outcome held = run_program(check);
  EXPECT_EQ(held.status, 0) << held.text();
  EXPECT_THAT(held.out, HasSubstr("targets scored again from its artifacts"));
  // Shards of the official layout have no tokenizer beside them.
  const Path apart = scratch_ / "apart.model", beside = scratch_ / "data" / "tokenizer.model";
  fs::rename(beside, apart);
  EXPECT_EQ(run_program(check).status, 1);
  Args named = check;
  named.insert(named.end(), {"--tokenizer", apart.string()});
  const Outcome with = run_program(named);
  EXPECT_EQ(with.status, 0) << with.text();
  run_json({"data", "train-tokenizer", scratch_ / "data" / "words.txt", "--vocab", std::to_string(kSmokeVocab), "--lossless",
            "--out", scratch_ / "another.model"});
  named.back() = scratch_ / "another.model";
  const Outcome another = run_program(named);
  EXPECT_EQ(another.status, 1) << another.text();
  EXPECT_THAT(another.err, testing::AllOf(HasSubstr("another.model: this tokenizer"), HasSubstr("is not the one that")));
  fs::rename(apart, beside);
  const json told = json::parse(contents(receipt));
  EXPECT_EQ(told["machine"]["backend"], "cpu");
  EXPECT_EQ(told["machine"]["ranks"], 1);
  EXPECT_FALSE(told["machine"]["device"].get<std::string>().empty());
  EXPECT_THAT(told["audit"]["tests"][10]["detail"].get<std::string>(), HasSubstr("tokens (measured)"));
  // Numbers that only the artifact can contradict.
  nlohmann::ordered_json forged = nlohmann::ordered_json::parse(contents(receipt));
  for (auto& beginning : forged["records"]["beginnings"]) beginning["sha256"] = std::string(64, '0');
  forged.erase("sha256");
  forged["sha256"] = fairway::sha256_hex(forged.dump());
  put_file(receipt, forged.dump(2) + "\n");
  EXPECT_EQ(run_program({"submission", "--check", record.string()}).status, 0);
  const Outcome found = run_program(check);
  EXPECT_EQ(found.status, 1) << found.text();
  EXPECT_THAT(found.err, HasSubstr("model_seed2.fwy: its first"));
  fs::remove(record / "model_seed1.fwy");
  EXPECT_THAT(run_program(check).err, HasSubstr("model_seed1.fwy: is missing"));
}

TEST_F(ThreeRuns, HaveStatisticsAndMakeASubmission) {
  EXPECT_EQ(seeds_["runs"].size(), 3U);
  EXPECT_GT(seeds_["sd"]["score_bpb"].get<double>(), 0);
  EXPECT_FALSE(seeds_["comparison"]["record"].get<bool>());
  EXPECT_THAT(seeds_["comparison"]["refused"].get<std::string>(), HasSubstr("official validation text"));
  Args against = submit({(scratch_ / "seeds").string()}, "refused");
  against.insert(against.end(), {"--against", "pr1019"});
  EXPECT_EQ(run_program(against).status, 2) << "another text than pr1019's";
  EXPECT_FALSE(fs::exists(scratch_ / "refused"));
  const json result = run_json(submit({(scratch_ / "seeds").string()}, "record"));
  EXPECT_NEAR(result["val_bpb"].get<double>(), seeds_["mean"]["score_bpb"].get<double>(), 1e-12);
  const Path record = scratch_ / "record";
  for (const char* file : {"README.md", "submission.json", "train_seed1.log", "train_seed2.log", "train_seed3.log",
                           "receipt_seed1.json", "recipe.toml", "source.7z", "requirements.txt", "run.sh"})
    EXPECT_TRUE(fs::exists(record / file)) << file;
  EXPECT_TRUE(run_json({"submission", "--check", record.string()})["held"].get<bool>());
  // The sources that are counted are the sources that are shipped, and can be unpacked.
  const std::string list =
      "$(command -v 7zz || command -v 7z) x -so '" + (record / "source.7z").string() + "' | grep -aqx '.src/record/main.cpp'";
  EXPECT_EQ(std::system(list.c_str()), 0);
  EXPECT_EQ(json::parse(contents(record / "submission.json"))["bytes_code"], fs::file_size(record / "source.7z"));

  std::string log = contents(record / "train_seed2.log");
  put_file(record / "train_seed2.log", log.replace(log.find("total_eval_time:"), 17, "total_eval_time:9000"));
  const Outcome broken = run_program({"submission", "--check", record.string()});
  EXPECT_EQ(broken.status, 1) << broken.text();
  EXPECT_THAT(broken.err, HasSubstr("train_seed2.log: scoring took"));
  expect_checked_by_scoring();
}

TEST(ScoreSeconds, ARunThatCannotScoreInTimeIsRefusedBeforeItTrains) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Outcome refused =
      run_program(run_smoke(scratch / "data", scratch / "run", {"--steps", "3", "--score-seconds", "0.000001"}));
  EXPECT_EQ(refused.status, 2) << refused.text();
  EXPECT_THAT(refused.err, HasSubstr("--score-seconds 1e-06: after training, "));
  EXPECT_THAT(refused.err, HasSubstr("s on this machine"));
  EXPECT_FALSE(fs::exists(scratch / "run"));
  EXPECT_EQ(run_program(run_smoke(scratch / "data", scratch / "run", {"--steps", "3", "--score-seconds", "0"})).status, 0);
}

TEST_F(ThreeRuns, AreRefusedWhenARuleIsBroken) {
  const auto refused = [&](const Args& runs, const std::string& sentence) {
    const Outcome outcome = run_program(submit(runs, "refused"));
    EXPECT_EQ(outcome.status, 1) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr(sentence));
    EXPECT_FALSE(fs::exists(scratch_ / "refused"));
  };
  refused({seed(1), seed(2)}, "a submission needs at least 3");
  refused({seed(1), seed(2), seed(1)}, "have the same seed 1");
  const Path artifact = Path(seed(3)) / "model.fwy";
  const std::string bytes = contents(artifact);
  put_file(artifact, bytes + "x");
  refused({seed(1), seed(2), seed(3)}, "is stale: model.fwy is not the artifact that was scored");
  put_file(artifact, bytes);
  // A score of a part of the data has no place in a submission; its receipt, without an audit, neither.
  const Path data = scratch_ / "data";
  ASSERT_EQ(run_program({"score", artifact.string(), "--data", data.string(), "--tokens", "640", "--out", seed(3)}).status, 0);
  refused({seed(1), seed(2), seed(3)}, "scored only the first 640 tokens");
  refused({seed(1), seed(2), seed(3)}, "has no audit");
  fs::remove(Path(seed(2)) / "receipt.json");
  const Outcome missing = run_program(submit({seed(1), seed(2), seed(3)}, "refused"));
  EXPECT_EQ(missing.status, 2) << missing.text();
  EXPECT_THAT(missing.err, HasSubstr("receipt.json: missing"));
}

}  // namespace
