// Bad input of every kind: exit status 2, one sentence on standard error that names the thing at fault, no crash, and no run
// folder left behind that looks like a run.
#include <gmock/gmock.h>

#include <cstring>

#include "app/world.h"
#include "model/safetensors.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Bad {
  std::string what;
  Args args;
  std::vector<std::string> says;  // each must be in the sentence
};

void expect_refused(const std::vector<Bad>& table) {
  for (const Bad& bad : table) {
    SCOPED_TRACE(bad.what);
    const Outcome outcome = run_program(bad.args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_TRUE(outcome.out.empty()) << outcome.text();
    EXPECT_THAT(outcome.err, testing::StartsWith("fairway: ")) << outcome.text();
    for (const std::string& part : bad.says) EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_LT(outcome.err.size(), 1000U) << outcome.text();
  }
}

class BadInput : public testing::Test {
 protected:
  void SetUp() override { make_train_shards(data_); }
  std::string at(const std::string& name) const { return scratch_ / name; }
  Args train(const Args& more) const { return train_smoke(data_, scratch_ / "run", more); }

  // A data folder with one train shard of these bytes.
  std::string shard_folder(const std::string& name, const std::string& bytes,
                           const std::string& file = "fineweb_train_000000.bin") {
    fs::create_directories(scratch_ / name);
    put_file(scratch_ / name / file, bytes);
    return at(name);
  }
  Args train_on(const std::string& folder) const { return train_smoke(folder, scratch_ / "run", {"--steps", "2"}); }
  std::string file(const std::string& name, const std::string& bytes) {
    put_file(scratch_ / name, bytes);
    return at(name);
  }

  ScratchFolder scratch_;
  Path data_ = scratch_ / "data";
};

TEST_F(BadInput, CommandsAndFlags) {
  const auto tokenize_with = [&](const std::string& flag, const std::string& value) -> Args {
    return {"data", "tokenize", at("x"), "--tokenizer", at("m"), "--out", at("run"), flag, value};
  };
  expect_refused({
      {"no command", {}, {"subcommand"}},
      {"unknown command", {"trian"}, {"trian"}},
      {"unknown subcommand", {"data", "inspekt"}, {"inspekt"}},
      {"no recipe", {"train"}, {"RECIPE"}},
      {"no data", {"train", "smoke"}, {"--data"}},
      {"no out", {"train", "smoke", "--data", data_}, {"--out"}},
      {"unknown flag", train({"--stepz", "3"}), {"--stepz"}},
      {"unknown flag before a missing one", {"train", "smoke", "--datta", "x"}, {"--datta"}},
      {"a word too many", train({"again"}), {"again"}},
      {"flag without value", train({"--steps"}), {"--steps"}},
      {"steps not a number", train({"--steps", "many"}), {"--steps", "many"}},
      {"steps with a tail", train({"--steps", "3x"}), {"--steps", "3x"}},
      {"steps a fraction", train({"--steps", "1.5"}), {"--steps", "1.5"}},
      {"no steps", train({"--steps", "0"}), {"--steps", "0"}},
      {"negative steps", train({"--steps", "-4"}), {"--steps", "-4"}},
      {"too many digits", train({"--steps", "99999999999999999999999"}), {"--steps"}},
      {"seconds not a number", train({"--seconds", "soon"}), {"--seconds", "soon"}},
      {"seconds nan", train({"--seconds", "nan"}), {"--seconds", "nan"}},
      {"seconds infinite", train({"--seconds", "inf"}), {"--seconds", "inf"}},
      {"negative seconds", train({"--seconds", "-1"}), {"--seconds", "-1"}},
      {"seconds and steps", train({"--seconds", "3", "--steps", "3"}), {"--seconds", "--steps"}},
      {"negative seed", train({"--seed", "-1"}), {"--seed", "-1"}},
      {"seed beyond 2^53", train({"--seed", "9007199254740993"}), {"seed", "9007199254740993"}},
      {"negative threads", train({"--threads", "-1"}), {"--threads", "-1"}},
      {"a million threads", train({"--threads", "1000000"}), {"--threads", "1000000"}},
      {"threads of a command that needs none", {"recipes", "--threads", "-1"}, {"--threads", "-1"}},
      {"unknown backend", train({"--backend", "tpu"}), {"--backend", "tpu", "cpu, cuda or ref"}},
      {"unknown backend of a command that needs none", {"recipes", "--backend", "tpu"}, {"--backend", "tpu"}},
      {"score mode", {"score", at("run"), "--data", data_, "--mode", "guess"}, {"--mode", "guess"}},
      {"bench tokens", {"bench", "step", "--recipe", "smoke", "--tokens", "65"}, {"--tokens", "65", "64"}},
      {"bench seconds nan", {"bench", "ops", "--seconds", "nan"}, {"--seconds", "nan"}},
      {"temperature nan", {"generate", at("run"), "--temperature", "nan"}, {"--temperature", "nan"}},
      {"bench seconds", {"bench", "step", "--recipe", "smoke", "--seconds", "-3"}, {"--seconds", "-3"}},
      {"vocabulary", {"data", "train-tokenizer", at("x"), "--vocab", "70000", "--out", at("y")}, {"--vocab", "70000"}},
      {"shuffle seed", tokenize_with("--shuffle", "blue"), {"--shuffle", "blue"}},
      {"negative shuffle seed", tokenize_with("--shuffle", "-1"), {"--shuffle", "-1"}},
      {"shuffle seed beyond 2^53", tokenize_with("--shuffle", "9007199254740993"), {"--shuffle", "9007199254740993"}},
      {"compare length", {"ops", "compare", "smoke", "--length", "0"}, {"--length", "0"}},
      {"temperature", {"generate", at("run"), "--temperature", "-1"}, {"--temperature", "-1"}},
  });
  EXPECT_FALSE(fs::exists(scratch_ / "run"));
}

TEST_F(BadInput, CudaIsNotInThisBuild) {
  if (run_json({"doctor"})["cuda_in_build"] != false) GTEST_SKIP() << "this build has CUDA";
  expect_refused({{"cuda", train({"--backend", "cuda"}), {"--backend cuda", "without CUDA"}}});
}

TEST_F(BadInput, Recipes) {
  const auto recipe = [&](const std::string& name, const std::string& text) -> Args {
    return {"recipe", "show", file(name, text)};
  };
  expect_refused({
      {"unknown name", {"recipe", "show", "smok"}, {"smok", "smoke"}},
      {"missing file", {"recipe", "show", at("none.toml")}, {"none.toml"}},
      {"a folder", {"recipe", "show", data_}, {data_.string(), "folder"}},
      {"not TOML", recipe("a.toml", "[model\ndim = 3"), {"a.toml", "TOML"}},
      {"binary", recipe("b.toml", std::string("\0\xff\xfe\0", 4)), {"b.toml"}},
      {"unknown key", recipe("c.toml", "[model]\nlayrs = 3\n"), {"c.toml:2", "layrs", "model.layers"}},
      {"unknown table", recipe("d.toml", "[optimizer]\nclip = 3\n"), {"d.toml:1", "optimizer"}},
      {"wrong type", recipe("e.toml", "[model]\ndim = \"wide\"\n"), {"e.toml:2", "model.dim", "wide"}},
      {"out of range", recipe("f.toml", "[model]\nheads = 0\n"), {"f.toml:2", "model.heads", "0"}},
      {"heads do not divide", recipe("g.toml", "[model]\ndim = 100\nheads = 7\n"), {"g.toml", "heads"}},
      {"set without value", train({"--set", "model.dim"}), {"model.dim"}},
      {"set of an unknown key", train({"--set", "optim.matrix.lrr=1"}), {"optim.matrix.lrr", "optim.matrix.lr"}},
      {"set of a table", train({"--set", "model=3"}), {"model"}},
      {"set of another type", train({"--set", "train.seed=blue"}), {"train.seed", "blue"}},
      {"set beyond the range", train({"--set", "average.ema_decay=2"}), {"average.ema_decay", "2"}},
      {"set of nothing", train({"--set", "=3"}), {"=3"}},
      {"batch that does not divide", train({"--set", "train.batch_tokens=500"}), {"train.batch_tokens", "128"}},
      {"row longer than the micro-batch", train({"--set", "data.seq_len=4096"}), {"seq_len", "4096"}},
  });
  EXPECT_FALSE(fs::exists(scratch_ / "run"));
}

TEST_F(BadInput, Shards) {
  const std::string good = contents(data_ / "fineweb_train_000000.bin");
  const auto patched = [&](size_t offset, int32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    return bytes;
  };
  std::string beyond = good;
  for (size_t i = 1024; i < beyond.size(); i += 2) beyond[i + 1] = '\x7f';
  expect_refused({
      {"missing folder", train_on(at("nowhere")), {"nowhere"}},
      {"a file instead", train_on(file("a_file", good)), {"a_file"}},
      {"no shards", train_on(shard_folder("none", good, "train.bin")), {"none", "fineweb_train_*.bin"}},
      {"misnamed", train_on(shard_folder("misnamed", good, "fineweb_train_000000.bin.gz")), {"misnamed"}},
      {"empty", train_on(shard_folder("empty", "")), {"fineweb_train_000000.bin", "0 bytes"}},
      {"garbage", train_on(shard_folder("garbage", std::string(4000, 'x'))), {"fineweb_train_000000.bin", "magic"}},
      {"header only", train_on(shard_folder("short", good.substr(0, 500))), {"fineweb_train_000000.bin", "500"}},
      {"truncated", train_on(shard_folder("cut", good.substr(0, good.size() - 2))), {"fineweb_train_000000.bin", "6000"}},
      {"longer than it says", train_on(shard_folder("long", good + "xx")), {"fineweb_train_000000.bin", "6000"}},
      {"wrong magic", train_on(shard_folder("magic", patched(0, 20240521))), {"20240521", "20240520"}},
      {"wrong version", train_on(shard_folder("version", patched(4, 2))), {"version 2"}},
      {"negative count", train_on(shard_folder("negative", patched(8, -5))), {"-5"}},
      {"another count", train_on(shard_folder("count", patched(8, 5000))), {"5000"}},
      {"a folder named as a shard",
       [&] {
         fs::create_directories(scratch_ / "dir" / "fineweb_train_000000.bin");
         return train_on(at("dir"));
       }(),
       {"fineweb_train_000000.bin", "folder"}},
      {"token beyond the vocabulary", train_on(shard_folder("beyond", beyond)), {"fineweb_train_000000.bin", "512"}},
  });
  make_train_shards(scratch_ / "tiny", kSmokeVocab, 60);
  expect_refused({{"fewer tokens than a window", train_on(at("tiny")), {"tokens"}}});
}

TEST_F(BadInput, ValidationDataIsRefusedBeforeTraining) {
  make_data(data_);
  put_file(scratch_ / "words.txt", english_like(200000));
  const auto variant = [&](const std::string& name) {
    fs::copy(data_, scratch_ / name);
    return scratch_ / name;
  };
  fs::remove(variant("no_tokenizer") / "tokenizer.model");
  put_file(variant("garbage") / "tokenizer.model", std::string(3000, '\xa7'));
  put_file(variant("empty") / "tokenizer.model", "");
  put_file(variant("text") / "tokenizer.model", "not a tokenizer at all\n");
  run_json({"data", "train-tokenizer", at("words.txt"), "--vocab", "400", "--out", variant("other") / "tokenizer.model"});
  fairway::data::write_shard(variant("few") / "fineweb_val_000000.bin", random_tokens(40, kSmokeVocab, 1));
  fairway::data::write_shard(variant("beyond") / "fineweb_val_000000.bin", std::vector<uint16_t>(500, 600));
  put_file(variant("cut") / "fineweb_val_000000.bin", contents(data_ / "fineweb_val_000000.bin").substr(0, 1500));
  expect_refused({
      {"no tokenizer", train_on(at("no_tokenizer")), {"tokenizer.model"}},
      {"garbage tokenizer", train_on(at("garbage")), {"tokenizer.model"}},
      {"empty tokenizer", train_on(at("empty")), {"tokenizer.model"}},
      {"text as tokenizer", train_on(at("text")), {"tokenizer.model"}},
      {"tokenizer of another vocabulary", train_on(at("other")), {"tokenizer.model", "400", "512"}},
      {"fewer validation tokens than a window", train_on(at("few")), {"40", "64"}},
      {"validation token beyond the vocabulary", train_on(at("beyond")), {"600", "512"}},
      {"truncated validation shard", train_on(at("cut")), {"fineweb_val_000000.bin"}},
  });
  EXPECT_FALSE(fs::exists(scratch_ / "run" / "metrics.jsonl"));
}

TEST_F(BadInput, OutputFolders) {
  const Args two{"--steps", "2"};
  const Path run = scratch_ / "run";
  ASSERT_EQ(run_program(train_smoke(data_, run, two)).status, 0);
  const std::string recipe = contents(run / "recipe.toml");
  file("plain", "a file");
  const Path latest = run / "checkpoint" / "latest.safetensors";
  expect_refused({
      {"holds a run", train_smoke(data_, run, two), {"run", "--resume"}},
      {"another recipe", train_smoke(data_, run, {"--steps", "2", "--set", "optim.clip=0.5", "--resume"}), {"run", "recipe"}},
      {"fewer steps", train_smoke(data_, run, {"--steps", "1", "--resume"}), {"run", "steps = 2", "steps = 1", "more steps"}},
      {"another seed", train_smoke(data_, run, {"--steps", "2", "--seed", "5", "--resume"}), {"run", "recipe"}},
      {"a file", train_smoke(data_, scratch_ / "plain", two), {"--out", "plain"}},
      {"under a file", train_smoke(data_, scratch_ / "plain" / "run", two), {"--out", "plain"}},
      {"not writable", train_smoke(data_, "/proc/fairway_run", two), {"--out", "/proc/fairway_run"}},
      {"resume of nothing with a file", train_smoke(data_, scratch_ / "plain", {"--resume"}), {"plain"}},
  });
  EXPECT_EQ(contents(run / "recipe.toml"), recipe);
  // Killed before its first checkpoint, a run is still the run of its recipe.
  fs::remove_all(run / "checkpoint");
  const Args other = train_smoke(data_, run, {"--steps", "2", "--set", "optim.clip=0.5", "--resume"});
  expect_refused({{"another recipe, no checkpoint", other, {"recipe.toml"}}});
  ASSERT_EQ(run_program(train_smoke(data_, run, {"--steps", "2", "--resume"})).status, 0);
  put_file(run / "recipe.toml", "[model]\ndimm = 4\n");
  expect_refused({{"a spoilt recipe", train_smoke(data_, run, {"--steps", "2", "--resume"}), {"recipe.toml"}}});
  put_file(run / "recipe.toml", recipe);
  make_train_shards(data_, kSmokeVocab, 7000);
  expect_refused({{"other data", train_smoke(data_, run, {"--steps", "2", "--resume"}), {"data"}}});
}

TEST_F(BadInput, CheckpointsThatAreAllDamaged) {
  const Path run = scratch_ / "run", folder = run / "checkpoint";
  const Args four{"--steps", "4", "--set", "train.checkpoint_every=2"};
  ASSERT_EQ(run_program(train_smoke(data_, run, four)).status, 0);
  Args resume = train_smoke(data_, run, four);
  resume.push_back("--resume");
  const std::string good = contents(folder / "latest.safetensors");
  std::string flipped = good;
  flipped[good.size() - 100] ^= 4;
  for (const std::string& bytes : {flipped, good.substr(0, 300), std::string("junk"), std::string()}) {
    for (const char* name : {"latest.safetensors", "previous.safetensors"}) put_file(folder / name, bytes);
    expect_refused({{"both damaged", resume, {"latest.safetensors", "previous.safetensors"}}});
  }
}

}  // namespace
