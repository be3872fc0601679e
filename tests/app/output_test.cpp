// What the commands print and write: the JSON fields that others read, the result alone with --quiet, a run folder's files.
#include <gmock/gmock.h>

#include <fstream>

#include "app/world.h"
#include "recipe/recipe.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

void expect_fields(const json& result, const std::vector<std::string>& fields, const std::string& what) {
  for (const std::string& field : fields) EXPECT_TRUE(result.contains(field)) << what << " has no " << field << ": " << result;
}

class Output : public testing::Test {
 protected:
  void SetUp() override { make_data(data_); }
  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run";
};

// Refused before any work, or worked with.
TEST_F(Output, OddNamesOfFolders) {
  for (const std::string name : {"-dash", "[x]", "two words", "\x1b[31m"}) {
    const std::string out = scratch_ / name;
    const Outcome outcome = run_program({"train", "smoke", "--data", data_, "--out=" + out, "--steps", "1"});
    EXPECT_EQ(outcome.status, 0) << outcome.text();
    EXPECT_TRUE(fs::exists(out + "/averaged.safetensors")) << name;
    EXPECT_EQ((outcome.out + outcome.err).find('\x1b'), std::string::npos) << "a name must not steer the terminal";
  }
  for (const Args& args : {train_smoke(data_, scratch_ / "bad\xff"), Args{"score", scratch_ / "bad\xff", "--data", data_}}) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr("bad\\xff: is not UTF-8"));
  }
  EXPECT_FALSE(fs::exists(scratch_ / "bad\xff"));
}

TEST_F(Output, TensorBoardKeepsRunsOfOneNameApart) {
  const std::string first = scratch_ / "a" / "run", second = scratch_ / "b" / "run", events = scratch_ / "events";
  for (const std::string& run : {first, second})
    ASSERT_EQ(run_program(train_smoke(data_, run, {"--steps", run == first ? "1" : "2"})).status, 0);
  const json result = run_json({"report", first, second + "/", "--out", scratch_ / "page.html", "--tensorboard", events});
  ASSERT_EQ(result["tensorboard"].size(), 2u);
  EXPECT_NE(result["tensorboard"][0], result["tensorboard"][1]);
  for (const json& file : result["tensorboard"]) EXPECT_TRUE(fs::exists(file.get<std::string>())) << file;
}

TEST_F(Output, TrainScoreGenerateExportAndImport) {
  const json train = run_json(train_smoke(data_, run_, {"--steps", "8"}));
  expect_fields(train, {"step_ms", "train_seconds", "tokens_per_second", "speed_of_light", "val_loss", "val_bpb"}, "train");
  expect_fields(train["seconds"], {"startup", "train", "score"}, "train's seconds");
  EXPECT_EQ(train["steps"], 8);
  const json score = run_json({"score", run_, "--data", data_, "--mode", "plain"});
  expect_fields(score, {"mode", "tokens", "bytes", "seconds", "legal"}, "score");
  EXPECT_EQ(score["mode"], "plain");
  EXPECT_EQ(score["val_loss"], train["val_loss"]);  // the same weights on the same tokens
  EXPECT_EQ(score["val_bpb"], train["val_bpb"]);
  EXPECT_EQ(score["tokens"], 1499 / 64 * 64);
  EXPECT_NEAR(score["val_loss"].get<double>(), std::log(512.0), 0.5);  // random tokens teach nothing
  const json text =
      run_json({"generate", run_, "--tokenizer", data_ + "/tokenizer.model", "--tokens", "5", "--prompt", "the "});
  expect_fields(text, {"text", "tokens_per_second", "first_token_ms"}, "generate");

  const std::string exported = scratch_ / "exported.safetensors", imported = scratch_ / "imported";
  run_json({"export", run_, "--out", exported});
  run_json({"import", exported, "--recipe", "smoke", "--out", imported});
  EXPECT_EQ(run_json({"score", imported, "--data", data_, "--mode", "plain"})["val_loss"], score["val_loss"]);
  EXPECT_EQ(run_json({"score", exported, "--recipe", "smoke", "--data", data_, "--mode", "plain"})["val_loss"],
            score["val_loss"]);
}

TEST_F(Output, DataCommands) {
  const std::string shards = scratch_ / "shards", model = data_ + "/tokenizer.model", words = data_ + "/words.txt";
  EXPECT_EQ(run_json({"data", "train-tokenizer", words, "--vocab", "400", "--out", scratch_ / "m"})["vocab"], 400);
  const json made = run_json({"data", "tokenize", words, "--tokenizer", model, "--out", shards, "--val", held_out_of(words)});
  expect_fields(made, {"documents", "tokens", "bytes", "shards"}, "tokenize");
  const json seen = run_json({"data", "inspect", shards});
  EXPECT_EQ(seen["shards"], made["shards"]);
  EXPECT_EQ(seen["tokens"], made["tokens"]);
  EXPECT_EQ(seen["problems"], json::array());
  ASSERT_EQ(run_program(train_smoke(shards, run_, {"--steps", "2"})).status, 0);  // what tokenize wrote can be trained on
}

TEST_F(Output, CommandsThatLookAround) {
  const json doctor = run_json({"doctor"});
  expect_fields(doctor, {"cpu", "threads", "cuda", "nccl", "mpi", "problems"}, "doctor");
  expect_fields(doctor["cuda"], {"device", "arch", "path"}, "doctor's cuda");
  const json bench = run_json({"bench", "step", "--recipe", "smoke", "--seconds", "0.1"});
  expect_fields(bench, {"median_ms", "spread", "tflops", "speed_of_light"}, "bench step");
  EXPECT_GT(bench["median_ms"].get<double>(), 0);
  const json products = run_json({"bench", "ops", "--seconds", "0.01", "--backend", "cpu"});
  EXPECT_EQ(products["backend"], "cpu");
  EXPECT_FALSE(products["gemm"].empty());
  const Outcome reference = run_program({"bench", "ops", "--seconds", "0.01", "--backend", "ref"});
  EXPECT_EQ(reference.status, 2) << "the reference's products are not what is timed";
  EXPECT_THAT(reference.err, HasSubstr("--backend ref"));
  EXPECT_EQ(run_json({"ops", "compare", "smoke", "--looped"})["held"], true);
  EXPECT_FALSE(run_json({"ops", "list"})["ops"].empty());
  const json names = run_json({"recipes"})["recipes"];
  for (const char* name : {"smoke", "demo", "pr726", "pr1072", "pr1105-early", "pr1105", "pr1584", "best", "record"})
    EXPECT_THAT(names, testing::Contains(name));
  const Outcome version = run_program({"--version"}), help = run_program({"train", "--help"});
  EXPECT_EQ(version.status, 0) << version.text();
  EXPECT_EQ(help.status, 0);
  for (const char* flag : {"--data", "--out", "--seconds", "--steps", "--seed", "--set", "--resume", "--json", "--quiet"})
    EXPECT_THAT(help.out, HasSubstr(flag));
}

TEST(Golden, FieldsAndStatus) {
  const Path folder = Path(FAIRWAY_SOURCE_DIR) / "tests" / "golden";
  if (!fs::exists(folder / "pr726_tiny.safetensors")) GTEST_SKIP() << "no golden cases in " << folder;
  for (const char* backend : {"cpu", "ref"}) {
    const json single = run_json({"golden", folder / "pr726_tiny.safetensors", "--backend", backend});
    expect_fields(single, {"loss", "loss_expected", "loss_rel_err", "worst_grad"}, "golden");
    expect_fields(single["worst_grad"], {"name", "rel_err"}, "worst_grad");
    EXPECT_EQ(single["held"], true);
  }
  const json trajectory = run_json({"golden", folder / "pr1105_tiny_train40.safetensors"});
  expect_fields(trajectory, {"worst_loss_rel_err", "worst_final_rel_err"}, "golden trajectory");
  EXPECT_EQ(trajectory["held"], true);
}

TEST_F(Output, QuietKeepsTheResultAlone) {
  const std::string model = data_ + "/tokenizer.model", words = data_ + "/words.txt";
  const std::vector<Args> commands{
      train_smoke(data_, run_, {"--steps", "12", "--set", "train.validate_every=5"}),
      {"score", run_, "--data", data_},
      {"generate", run_, "--tokenizer", model, "--tokens", "3"},
      {"data", "train-tokenizer", words, "--vocab", "400", "--out", scratch_ / "m"},
      {"data", "tokenize", words, "--tokenizer", model, "--out", scratch_ / "shards"},
      {"data", "inspect", data_},
      {"recipes"},
      {"recipe", "show", "best"},
      {"doctor"},
  };
  for (Args args : commands) {
    args.push_back("--quiet");
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 0) << args[0] << outcome.text();
    EXPECT_EQ(outcome.err, "") << args[0];
    EXPECT_NE(outcome.out, "") << args[0];
  }
}

TEST_F(Output, JsonIsTheOnlyThingOnStandardOutput) {
  const Outcome outcome = run_program(train_smoke(data_, run_, {"--steps", "3", "--json"}));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
  EXPECT_TRUE(json::accept(outcome.out)) << outcome.out;
}

TEST_F(Output, TrainLogHasTheChallengesLines) {
  ASSERT_EQ(run_program(train_smoke(data_, run_, {"--set", "train.validate_every=20", "--seed", "9"})).status, 0);
  const std::string log = contents(Path(run_) / "train.log");
  using testing::ContainsRegex;
  EXPECT_THAT(log, ContainsRegex("(^|\n)model_params:209401 "));
  EXPECT_THAT(log, ContainsRegex("\nseed:9\n"));
  EXPECT_THAT(log, ContainsRegex("\ntrain_batch_tokens:512 train_seq_len:64 iterations:40 "));
  EXPECT_THAT(log, ContainsRegex("\nstep:1/40 train_loss:[0-9.]+ train_time:[0-9]+ms step_avg:[0-9]+\\.[0-9][0-9]ms\n"));
  EXPECT_THAT(log, ContainsRegex("\nstep:20/40 val_loss:[0-9.]+ val_bpb:[0-9.]+ train_time:[0-9]+ms step_avg:[0-9.]+ms\n"));
  EXPECT_THAT(log, ContainsRegex("\nlate_qat:enabled step:[0-9]+ scale:[0-9.]+\n"));
  EXPECT_THAT(log, ContainsRegex("\nlayer_loop:enabled step:[0-9]+ "));
  EXPECT_THAT(log, ContainsRegex("\npeak memory allocated: [1-9][0-9]* MiB reserved: [1-9][0-9]* MiB\n"));
  EXPECT_THAT(log, ContainsRegex("\nema:applying (ema|EMA) weights\n"));
  EXPECT_THAT(log, ContainsRegex("\nDIAGNOSTIC post_ema val_loss:[0-9.]+ val_bpb:[0-9.]+ eval_time:[0-9]+ms\n"));
}

TEST_F(Output, TrainLogTellsWhenSnapshotsBegin) {
  const Args snapshots{"--set", "average.use=swa", "--set", "average.swa.enabled=true", "--set", "average.swa.every=2"};
  ASSERT_EQ(run_program(train_smoke(data_, run_, snapshots)).status, 0);
  EXPECT_THAT(contents(Path(run_) / "train.log"),
              testing::ContainsRegex("\nswa:start step:[0-9]+\n(.*\n)*swa:applying swa weights\n"));
}

TEST_F(Output, TheRunFoldersRecipeIsTheRunsRecipe) {
  const Args changed{"--set", "optim.matrix.lr=0.0123", "--set", "model.value_embed.layers=[1, 3]"};
  Args args = train_smoke(data_, run_, {"--steps", "2", "--seed", "77"});
  args.insert(args.end(), changed.begin(), changed.end());
  ASSERT_EQ(run_program(args).status, 0);
  Args show{"recipe", "show", "smoke", "--set", "train.steps=2", "--set", "train.seed=77"};
  show.insert(show.end(), changed.begin(), changed.end());
  const json want = run_json(show), have = run_json({"recipe", "show", run_ + "/recipe.toml"});
  EXPECT_EQ(have["hash"], want["hash"]);
  EXPECT_EQ(have["recipe"], want["recipe"]);
  EXPECT_THAT(contents(Path(run_) / "train.log"), HasSubstr("recipe:" + want["hash"].get<std::string>()));
  // It can be given in the recipe's place, also to go on with the run.
  EXPECT_EQ(run_program({"train", run_ + "/recipe.toml", "--data", data_, "--out", run_, "--resume"}).status, 0);
}

}  // namespace
