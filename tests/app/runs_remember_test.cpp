// A run remembers its data, its tokenizer and what it began with; a folder is blocked by a run and by nothing else.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

json origin_of(const Path& run) { return json::parse(contents(run / "origin.json")); }

class Remembers : public testing::Test {
 protected:
  void SetUp() override {
    make_data(scratch_ / "shards");
    const Outcome made = run_program(train_smoke(scratch_ / "shards", scratch_ / "run", {"--steps", "3"}));
    ASSERT_EQ(made.status, 0) << made.text();
  }
  static void works(const Args& args) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 0) << args[0] << "\n" << outcome.text();
  }
  static void asks_of(const Path& run) {
    works({"pack", run, "--as-published"});
    works({"generate", run / "model.fwy", "--prompt", "the", "--tokens", "2"});
    works({"generate", run, "--prompt", "the", "--tokens", "2"});
    works({"score", run, "--mode", "plain"});
    works({"score", run / "model.fwy", "--mode", "plain"});
    works({"audit", run, "--mode", "plain", "--no-controls", "--probes", "1"});
    works({"report", run});
  }
  std::string at(const std::string& name) const { return scratch_ / name; }
  ScratchFolder scratch_;
};

TEST_F(Remembers, DataAndTokenizerAreFoundFromTheRun) {
  asks_of(scratch_ / "run");
  const json origin = origin_of(scratch_ / "run");
  EXPECT_EQ(origin["data"], at("shards"));
  EXPECT_EQ(origin["relative"], "../shards");
  ASSERT_EQ(origin["launches"].size(), 1U);
  EXPECT_EQ(origin["launches"][0]["command"][1], "train");
  EXPECT_EQ(origin["launches"][0]["command"][2], "smoke");
}

// An artifact does not hold how its recipe scores; the run's folder does.
TEST_F(Remembers, AnArtifactIsScoredAsItsRunWas) {
  const Path run = scratch_ / "whole", artifact = run / "model.fwy";
  const Outcome made = run_program({"run", "smoke", "--data", at("shards"), "--steps", "2", "--out", run, "--set",
                                    "score.mode=\"lora-ttt\"", "--set", "score.lora.lr=0.02", "--set", "score.lora.chunk=16"});
  ASSERT_EQ(made.status, 0) << made.text();
  const auto score = [](const Args& args) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 0) << outcome.text();
    return json::parse(outcome.out);
  };
  const json kept = json::parse(contents(run / "score.json"));
  ASSERT_EQ(kept["mode"], "lora-ttt");
  EXPECT_EQ(score({"score", artifact, "--json"})["val_bpb"], kept["val_bpb"]);
  EXPECT_NE(score({"score", artifact, "--json", "--set", "score.lora.lr=0.0001"})["val_bpb"], kept["val_bpb"]) << "flags win";
  EXPECT_EQ(score({"score", artifact, "--json", "--mode", "plain"})["mode"], "plain");
  fs::create_directories(scratch_ / "apart");
  fs::copy_file(artifact, scratch_ / "apart" / "model.fwy");
  EXPECT_EQ(score({"score", at("apart/model.fwy"), "--data", at("shards"), "--json"})["mode"], "sliding") << "nobody told it";
}

TEST_F(Remembers, TheyAreFoundAgainAfterAMove) {
  fs::create_directories(scratch_ / "elsewhere");
  fs::rename(scratch_ / "run", scratch_ / "elsewhere" / "run");
  fs::rename(scratch_ / "shards", scratch_ / "elsewhere" / "shards");
  works({"score", at("elsewhere/run"), "--mode", "plain"});
  works({"generate", at("elsewhere/run"), "--prompt", "the", "--tokens", "2"});
}

TEST_F(Remembers, WhatIsGoneIsToldWithThePlacesThatWereSearched) {
  fs::rename(scratch_ / "shards", scratch_ / "hidden");
  const Outcome score = run_program({"score", at("run")}), text = run_program({"generate", at("run"), "--prompt", "the"});
  EXPECT_EQ(score.status, 2) << score.text();
  EXPECT_THAT(score.err, testing::AllOf(HasSubstr("--data"), HasSubstr(at("shards")), HasSubstr(at("run/data"))));
  EXPECT_EQ(text.status, 2) << text.text();
  EXPECT_THAT(text.err, testing::AllOf(HasSubstr("tokenizer.model"), HasSubstr(at("shards")), HasSubstr("--with-tokenizer")));
  works({"score", at("run"), "--data", at("hidden"), "--mode", "plain"});
}

TEST_F(Remembers, ATokenizerNamedApartFromTheShards) {
  fs::rename(scratch_ / "shards" / "tokenizer.model", scratch_ / "other.model");
  works(train_smoke(scratch_ / "shards", scratch_ / "apart", {"--steps", "3", "--tokenizer", at("other.model")}));
  EXPECT_EQ(origin_of(scratch_ / "apart")["tokenizer"], at("other.model"));
  asks_of(scratch_ / "apart");
  works({"pack", at("apart"), "--as-published", "--with-tokenizer"});
  // What a whole run checks before the clock knows it too: the bytes it will carry, and that it is the fork's.
  const Args run{"run", "smoke",       "--data",          at("shards"), "--steps",
                 "2",   "--tokenizer", at("other.model"), "--out",      at("whole")};
  Args carrying = run;
  carrying.insert(carrying.end(), {"--with-tokenizer", "--budget", "10KB"});
  const Outcome over = run_program(carrying);
  EXPECT_EQ(over.status, 2) << over.text();
  EXPECT_THAT(over.err, testing::AllOf(HasSubstr("--budget 10000"), HasSubstr("its tokenizer among them")));
  EXPECT_FALSE(fs::exists(scratch_ / "whole" / "metrics.jsonl"));
  put_file(scratch_ / "zebra.txt", "zebra " + english_like(60000));
  run_json({"data", "train-tokenizer", at("zebra.txt"), "--vocab", std::to_string(kSmokeVocab), "--out", at("zebra.model")});
  works(train_smoke(scratch_ / "shards", scratch_ / "zebra", {"--steps", "2", "--tokenizer", at("zebra.model")}));
  Args fork = run;
  fork.insert(fork.end(), {"--from", at("zebra")});
  const Outcome forked = run_program(fork);
  EXPECT_EQ(forked.status, 2) << forked.text();
  EXPECT_THAT(forked.err, testing::AllOf(HasSubstr("other.model: this tokenizer"), HasSubstr("zebra/averaged.safetensors")));
  EXPECT_FALSE(fs::exists(scratch_ / "whole" / "metrics.jsonl"));
  fs::remove(scratch_ / "other.model");
  works({"generate", at("apart/model.fwy"), "--prompt", "the", "--tokens", "2"});
}

TEST_F(Remembers, ABrokenMemoryIsASentence) {
  const std::string good = contents(scratch_ / "run" / "origin.json");
  for (const std::string& text : {std::string(), std::string("[]"), good.substr(0, good.size() / 2),
                                  std::string("{\"data\": 3, \"relative\": \"x\"}"), std::string("{\"data\": \"x\"}"),
                                  std::string(100000, '['), std::string("{\"data\":\"x\",\"relative\":\"y\",\"from\":1}"),
                                  std::string("{\"data\":\"x\",\"relative\":\"y\",\"from\":{\"path\":\"x\"}}")}) {
    put_file(scratch_ / "run" / "origin.json", text);
    const Outcome outcome = run_program({"score", at("run"), "--mode", "plain"});
    EXPECT_EQ(outcome.status, 2) << text.substr(0, 50) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr("origin.json")) << text.substr(0, 50);
  }
}

TEST_F(Remembers, AForksTrainingCountsForBoth) {
  works({"pack", at("run"), "--as-published"});
  put_file(scratch_ / "run" / "timing.jsonl",
           "{\"step\":3,\"train_seconds\":550.0,\"step_ms\":1.0,\"data_wait_seconds\":0.0}\n");
  ASSERT_EQ(
      run_program(train_smoke(scratch_ / "shards", scratch_ / "fork", {"--steps", "1", "--from", at("run/model.fwy")})).status,
      0);
  put_file(scratch_ / "fork" / "timing.jsonl",
           "{\"step\":1,\"train_seconds\":60.0,\"step_ms\":1.0,\"data_wait_seconds\":0.0}\n");
  const Outcome audit = run_program({"audit", at("fork"), "--mode", "plain", "--no-controls", "--probes", "1"});
  EXPECT_EQ(audit.status, 1) << audit.text();
  EXPECT_THAT(audit.out, HasSubstr("training 610 of 600 s"));
}

TEST_F(Remembers, AnArtifactMayCarryItsTokenizer) {
  const json plain = run_json({"pack", at("run"), "--as-published", "--out", at("plain.fwy")});
  const json packed = run_json({"pack", at("run"), "--as-published", "--with-tokenizer", "--out", at("own.fwy")});
  const int64_t carried = packed["tokenizer_bytes"];
  EXPECT_GT(carried, 1000);
  EXPECT_EQ(plain["tokenizer_bytes"], 0);
  EXPECT_EQ(packed["artifact_bytes"].get<int64_t>(), plain["artifact_bytes"].get<int64_t>() + carried);
  EXPECT_EQ(fs::file_size(scratch_ / "own.fwy"), packed["artifact_bytes"].get<uint64_t>());
  const auto& lines = packed["ledger"];
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                          [&](const json& l) { return l["name"] == "tokenizer" && l["bytes"] == carried; }));
  const uint64_t budget = packed["artifact_bytes"].get<uint64_t>() - 1;
  const Outcome over = run_program(
      {"pack", at("run"), "--as-published", "--with-tokenizer", "--budget", std::to_string(budget), "--out", at("over.fwy")});
  EXPECT_EQ(over.status, 2) << over.text();
  const Outcome none = run_program({"pack", at("run"), "--with-tokenizer", "--budget", std::to_string(carried)});
  EXPECT_EQ(none.status, 2) << none.text();
  EXPECT_THAT(none.err, HasSubstr("the tokenizer alone takes"));
  const Args ask{"--prompt", "the", "--tokens", "8", "--seed", "3"};
  const auto text_of = [&](const std::string& file, const Args& more) {
    Args args{"generate", file};
    args.insert(args.end(), ask.begin(), ask.end());
    args.insert(args.end(), more.begin(), more.end());
    return run_json(args)["text"].get<std::string>();
  };
  const std::string want = text_of(at("run"), {});
  EXPECT_FALSE(want.empty());
  const std::string given = text_of(at("plain.fwy"), {"--tokenizer", at("shards/tokenizer.model")});
  fs::create_directories(scratch_ / "alone");
  fs::rename(scratch_ / "own.fwy", scratch_ / "alone" / "own.fwy");
  fs::remove_all(scratch_ / "shards");
  fs::remove_all(scratch_ / "run");
  EXPECT_EQ(text_of(at("alone/own.fwy"), {}), given);
  EXPECT_EQ(text_of(at("alone/own.fwy"), {"--backend", "ref"}).empty(), false);
  EXPECT_EQ(run_program({"generate", at("plain.fwy"), "--prompt", "the"}).status, 2);
}

TEST_F(Remembers, ARunThatHasEndedGoesOnForLonger) {
  const Path run = scratch_ / "run";
  const std::string first = contents(run / "metrics.jsonl"), checkpoint = contents(run / "checkpoint" / "latest.safetensors");
  const Args longer = train_smoke(scratch_ / "shards", run, {"--steps", "6", "--resume"});
  const Outcome extended = run_program(longer);
  ASSERT_EQ(extended.status, 0) << extended.text();
  EXPECT_THAT(extended.err, HasSubstr("extended from 3 steps to 6 steps"));
  EXPECT_THAT(contents(run / "train.log"), HasSubstr("extended from 3 steps to 6 steps"));
  EXPECT_THAT(contents(run / "recipe.toml"), HasSubstr("steps = 6"));
  EXPECT_EQ(origin_of(run)["launches"].size(), 2U);
  int64_t steps = 0;
  for (const json& line : json_lines(run / "metrics.jsonl")) steps += line.contains("loss") ? 1 : 0;
  EXPECT_EQ(steps, 6);
  const RunBytes whole = bytes_of_run(run);
  // Killed before the first checkpoint of the longer run, it still goes on.
  put_file(run / "checkpoint" / "latest.safetensors", checkpoint);
  ASSERT_EQ(run_program(longer).status, 0);
  EXPECT_EQ(contents(run / "averaged.safetensors"), whole.averaged);
  const Outcome shorter = run_program(train_smoke(scratch_ / "shards", run, {"--steps", "5", "--resume"}));
  EXPECT_EQ(shorter.status, 2) << shorter.text();
  EXPECT_THAT(shorter.err, HasSubstr("more steps or seconds"));
  const Outcome clock = run_program(train_smoke(scratch_ / "shards", run, {"--seconds", "0.02", "--resume"}));
  EXPECT_EQ(clock.status, 2) << clock.text();
  EXPECT_THAT(contents(run / "recipe.toml"), HasSubstr("steps = 6"));
}

TEST_F(Remembers, ARunMayBeginWithTheWeightsOfAnother) {
  const Path fork = scratch_ / "fork";
  const Args args = train_smoke(scratch_ / "shards", fork, {"--steps", "2", "--from", at("run")});
  const Outcome made = run_program(args);
  ASSERT_EQ(made.status, 0) << made.text();
  const json from = origin_of(fork)["from"];
  EXPECT_EQ(from["path"], at("run/averaged.safetensors"));
  EXPECT_EQ(from["sha256"].get<std::string>().size(), 64U);
  EXPECT_GT(from["train_seconds"].get<double>(), 0);
  EXPECT_LT(json_lines(fork / "metrics.jsonl")[0]["loss"].get<double>(),
            json_lines(scratch_ / "run" / "metrics.jsonl")[0]["loss"].get<double>());
  // It goes on as the run it is, and with nothing else.
  EXPECT_EQ(run_program(train_smoke(scratch_ / "shards", fork, {"--steps", "3", "--resume"})).status, 0);
  EXPECT_EQ(origin_of(fork)["from"], from);
  ASSERT_EQ(run_program(train_smoke(scratch_ / "shards", scratch_ / "other", {"--steps", "1"})).status, 0);
  const Outcome other =
      run_program(train_smoke(scratch_ / "shards", fork, {"--steps", "4", "--resume", "--from", at("other")}));
  EXPECT_EQ(other.status, 2) << other.text();
  EXPECT_THAT(other.err, HasSubstr("began with the weights of"));
  const Outcome wider = run_program(train_smoke(scratch_ / "shards", scratch_ / "wider",
                                                {"--steps", "1", "--from", at("run"), "--set", "model.mlp_hidden=256"}));
  EXPECT_EQ(wider.status, 2) << wider.text();
  EXPECT_THAT(wider.err, HasSubstr("averaged.safetensors"));
  EXPECT_FALSE(fs::exists(scratch_ / "wider"));
  // An unfinished run gives the weights of its checkpoint.
  fs::remove(scratch_ / "other" / "averaged.safetensors");
  EXPECT_EQ(run_program(train_smoke(scratch_ / "shards", scratch_ / "late", {"--steps", "1", "--from", at("other")})).status,
            0);
  EXPECT_THAT(origin_of(scratch_ / "late")["from"]["path"].get<std::string>(), HasSubstr("checkpoint/latest.safetensors"));
}

// The clock cannot hold what calibration takes, which shows after the folder is made and before the first step.
TEST_F(Remembers, AFailureBeforeTheFirstStepBlocksNoFolder) {
  const Path run = scratch_ / "failed";
  const Args bad{"--seconds", "0.3",
                 "--set",     "quant.rule=gptq",
                 "--set",     "quant.calibration=train",
                 "--set",     "quant.calibration_batches=4096"};  // seconds on any machine
  const Outcome failed = run_program(train_smoke(scratch_ / "shards", run, bad));
  ASSERT_EQ(failed.status, 2) << failed.text();
  ASSERT_TRUE(fs::exists(run / "recipe.toml")) << failed.text();
  const Outcome corrected = run_program(train_smoke(scratch_ / "shards", run, {"--steps", "2"}));
  EXPECT_EQ(corrected.status, 0) << corrected.text();
  EXPECT_THAT(contents(run / "recipe.toml"), HasSubstr("steps = 2"));
  EXPECT_EQ(run_program(train_smoke(scratch_ / "shards", run, {"--steps", "2"})).status, 2) << "a run is there now";
  const Path whole = scratch_ / "whole";
  Args command{"run", "smoke", "--data", at("shards"), "--out", whole};
  command.insert(command.end(), bad.begin(), bad.end());
  ASSERT_EQ(run_program(command).status, 2);
  works({"run", "smoke", "--data", at("shards"), "--out", whole, "--steps", "2"});
}

TEST_F(Remembers, ARecipeOfOnesOwnIsNotTakenForARun) {
  fs::create_directories(scratch_ / "mine");
  put_file(scratch_ / "mine" / "recipe.toml", "extends = \"smoke\"\n");
  const Outcome refused = run_program(train_smoke(scratch_ / "shards", scratch_ / "mine", {"--steps", "1"}));
  EXPECT_EQ(refused.status, 2) << refused.text();
  EXPECT_EQ(contents(scratch_ / "mine" / "recipe.toml"), "extends = \"smoke\"\n");
}

// What would be refused hours later is refused before there is a folder.
TEST_F(Remembers, ARunIsPlannedBeforeTheClock) {
  const auto refused = [&](const Args& more, const std::vector<std::string>& says) {
    Args args{"run", "smoke", "--data", at("shards"), "--out", at("planned"), "--steps", "2"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    for (const std::string& part : says) EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_FALSE(fs::exists(scratch_ / "planned" / "metrics.jsonl")) << outcome.text();
  };
  refused({"--codec", "zip"}, {"--codec zip", "brotli"});
  refused({"--budget", "1KB"}, {"--budget 1000", "coarsest file", "larger budget"});
  refused({"--budget", "10KB", "--with-tokenizer"}, {"--budget 10000", "tokenizer"});
  const Outcome little =
      run_program(train_smoke(scratch_ / "shards", scratch_ / "planned", {"--steps", "2", "--memory", "100KB"}));
  EXPECT_EQ(little.status, 2) << little.text();
  EXPECT_THAT(little.err, testing::AllOf(HasSubstr("train.micro_batch_tokens = 128"), HasSubstr("MiB"), HasSubstr("--memory")));
  const Outcome clock = run_program({"train", "pr1105", "--data", at("shards"), "--out", at("planned"), "--seconds", "0.01"});
  EXPECT_EQ(clock.status, 2) << clock.text();
  EXPECT_THAT(clock.err,
              testing::AllOf(HasSubstr("train.seconds = 0.01"), HasSubstr("at least"), HasSubstr("train.batch_tokens")));
}

TEST_F(Remembers, AMicroBatchShrinksWhereMemoryDemandsItAndSaysSo) {
  const auto train = [&](const Args& more) {
    Args args = train_smoke(scratch_ / "shards", scratch_ / "small",
                            {"--set", "train.batch_tokens=8192", "--set", "train.micro_batch_tokens=4096"});
    args.insert(args.end(), more.begin(), more.end());
    return run_program(args);
  };
  const Outcome little = train({"--steps", "1", "--memory", "100KB"});
  double whole = 0, least = 0;
  const size_t place = little.err.find("training would take ");
  ASSERT_NE(place, std::string::npos) << little.text();
  ASSERT_EQ(std::sscanf(little.err.c_str() + place, "training would take %lf MiB of memory, %lf MiB", &whole, &least), 2);
  ASSERT_LT(least + 2, whole);
  const Outcome made =
      train({"--steps", "1", "--memory", std::to_string(static_cast<int64_t>((whole + least) / 2 * (1 << 20)))});
  ASSERT_EQ(made.status, 0) << made.text();
  EXPECT_THAT(contents(scratch_ / "small" / "train.log"),
              testing::ContainsRegex("plan:train.micro_batch_tokens is (1024|2048) instead of 4096"));
  EXPECT_THAT(contents(scratch_ / "small" / "recipe.toml"), testing::ContainsRegex("micro_batch_tokens = (1024|2048)\n"));
  // With memory again it goes on as it began.
  const Outcome longer = train({"--steps", "2", "--resume"});
  EXPECT_EQ(longer.status, 0) << longer.text();
  EXPECT_THAT(contents(scratch_ / "small" / "recipe.toml"), testing::ContainsRegex("micro_batch_tokens = (1024|2048)\n"));
}

// Paths that are not there, and files that are something else.
TEST_F(Remembers, AWrongPathIsAnsweredWithTheRightOne) {
  const auto refused = [&](const Args& args, const std::vector<std::string>& says) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << args[0] << " " << args[1] << "\n" << outcome.text();
    EXPECT_TRUE(outcome.out.empty()) << outcome.text();
    for (const std::string& part : says) EXPECT_THAT(outcome.err, HasSubstr(part)) << args[0] << " " << args[1];
  };
  works({"pack", at("run"), "--as-published"});
  const std::string run = at("run"), artifact = at("run/model.fwy"), shards = at("shards");
  refused(train_smoke(at("shard"), at("new"), {"--steps", "1"}), {"--data", "no such", "did you mean " + shards + "?"});
  refused({"run", "smoke", "--data", at("shard"), "--out", at("new")}, {"--data", "did you mean " + shards + "?"});
  refused(train_smoke(artifact, at("new"), {"--steps", "1"}), {"is an artifact", "expected a folder of shards"});
  refused(train_smoke(shards + "/fineweb_train_000000.bin", at("new")), {"is a shard", "did you mean " + shards + "?"});
  refused(train_smoke(run, at("new"), {"--steps", "1"}), {"is a run folder", "expected a folder of shards"});
  refused({"score", at("run/modle.fwy")}, {"no such file", "did you mean " + artifact + "?"});
  refused({"score", at("rum")}, {"did you mean " + run + "?"});
  refused({"score", run + "/recipe.toml"}, {"is a recipe", "expected a run folder, an artifact"});
  refused({"score", shards}, {"is a folder of shards", "expected a run folder"});
  refused({"score", artifact, "--data", artifact}, {"--data", "is an artifact"});
  refused({"generate", shards + "/tokenizer.model"}, {"is a tokenizer"});
  refused({"generate", run, "--tokenizer", shards + "/tokenizer.mode"}, {"did you mean " + shards + "/tokenizer.model?"});
  refused({"audit", run + "/origin.json"}, {"is a JSON file"});
  refused({"unpack", run, "--out", at("w.safetensors")}, {"is a run folder", "did you mean " + artifact + "?"});
  refused({"unpack", run + "/averaged.safetensors", "--out", at("w.safetensors")},
          {"is a weight file", "expected an artifact"});
  refused({"export", at("rum"), "--out", at("w.safetensors")}, {"did you mean " + run + "?"});
  refused({"report", artifact}, {"is an artifact", "did you mean " + run + "?"});
  refused({"report", shards}, {"is a folder of shards", "expected a run folder"});
  refused({"pack", run + "/recipe.toml"}, {"is a recipe"});
  refused({"quantize", at("rum")}, {"did you mean " + run + "?"});
  refused({"analyze", "svd", at("rum")}, {"did you mean " + run + "?"});
  refused({"train", run, "--data", shards, "--out", at("new")}, {"is a run folder", "did you mean " + run + "/recipe.toml?"});
  refused({"train", artifact, "--data", shards, "--out", at("new")}, {"is an artifact", "TOML"});
  refused({"data", "inspect", at("shard")}, {"did you mean " + shards + "?"});
  refused({"compare", at("rum"), "--against", "pr1019"}, {"did you mean " + run + "?"});
  refused({"submission", at("rum"), "--name", "a", "--author", "b", "--github-id", "c", "--out", at("record")},
          {"did you mean " + run + "?"});
  refused({"train", "smoke", "--data", shards, "--out", at("new"), "--from", shards}, {"is a folder of shards"});
  refused({"train", "smoke", "--data", shards, "--out", at("new"), "--set", "lr=1"},
          {"optim.matrix.lr", "optim.token.lr", "optim.scalar.lr"});
  EXPECT_FALSE(fs::exists(scratch_ / "new"));
}

TEST_F(Remembers, RecipesAndRunsAreDiffed) {
  put_file(scratch_ / "mine.toml", "extends = \"smoke\"\n[optim.matrix]\nlr = 0.5\n");
  const json diff = run_json({"recipe", "diff", "smoke", at("mine.toml")});
  EXPECT_EQ(diff["differences"], json::parse(R"([{"key": "optim.matrix.lr", "a": 0.02, "b": 0.5}])"));
  const json runs = run_json({"recipe", "diff", at("run"), "smoke"});
  EXPECT_EQ(runs["differences"], json::parse(R"([{"key": "train.steps", "a": 3, "b": 40}])"));
  EXPECT_THAT(run_program({"recipe", "diff", "smoke", "smoke"}).out, HasSubstr("the same keys"));
  EXPECT_EQ(run_program({"recipe", "diff", "smoke", at("none.toml")}).status, 2);
}

}  // namespace
