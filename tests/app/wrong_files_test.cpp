// Files of the wrong kind, where a run, an artifact, a text or a list is expected: a sentence and exit status 2, never a hang,
// a crash or memory without bound.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;

class WrongFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(scratch_ / "folder");
    ASSERT_EQ(::mkfifo((scratch_ / "pipe").c_str(), 0600), 0);
    put_file(scratch_ / "empty", "");
    put_file(scratch_ / "picture.png",
             std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08\6\0\0\0\\r\xa8", 30) + std::string(3000, '\xF7'));
    put_file(scratch_ / "words.txt", english_like(20000));
    const Outcome made = run_program({"data", "train-tokenizer", at("words.txt"), "--vocab", "400", "--out", at("m.model")});
    ASSERT_EQ(made.status, 0) << made.text();
  }
  std::string at(const std::string& name) const { return scratch_ / name; }

  // X stands for the wrong file.
  void expect_refused(const std::vector<Args>& commands) {
    for (const std::string& wrong :
         {at("folder"), at("pipe"), std::string("/dev/zero"), at("empty"), at("picture.png"), at("absent")}) {
      for (Args args : commands) {
        if (args[1] == "--check" && wrong == at("folder")) continue;  // a folder that breaks the rules: status 1
        if (args[0] == "recipe" && wrong == at("empty")) continue;    // a recipe of defaults alone
        std::string line;
        for (std::string& arg : args) {
          if (arg == "X") arg = wrong;
          line += " " + arg;
        }
        const Outcome outcome = run_program(args);
        EXPECT_EQ(outcome.status, 2) << line << "\n" << outcome.text();
        EXPECT_THAT(outcome.err, testing::HasSubstr("fairway: ")) << line << "\n" << outcome.text();
        EXPECT_TRUE(outcome.out.empty() || args[1] == "inspect") << line << "\n" << outcome.out;
        EXPECT_LT(outcome.err.size(), 2000U) << line;
      }
    }
  }
  ScratchFolder scratch_;
};

TEST_F(WrongFiles, Data) {
  expect_refused({{"data", "inspect", "X"},
                  {"data", "tokenize", "X", "--tokenizer", at("m.model"), "--out", at("shards")},
                  {"data", "tokenize", at("words.txt"), "--tokenizer", at("m.model"), "--val", "X", "--out", at("shards")},
                  {"data", "tokenize", at("words.txt"), "--tokenizer", "X", "--out", at("shards")},
                  {"data", "train-tokenizer", "X", "--vocab", "400", "--out", at("y.model")},
                  {"data", "overlap", "X", "X"},
                  {"data", "fetch", "sp1024", "--manifest", "X", "--out", at("fetched")}});
}

TEST_F(WrongFiles, RunsAndScores) {
  expect_refused({{"compare", "X", "X", "--against", "X", "X"},
                  {"compare", "X", "--against", "X", "--paired", "documents"},
                  {"report", "X"},
                  {"submission", "X", "X", "X", "--name", "n", "--author", "a", "--github-id", "g", "--out", at("records")},
                  {"submission", "--check", "X"},
                  {"audit", "--verify", "X"}});
}

TEST_F(WrongFiles, WeightsAndRecipes) {
  expect_refused({{"analyze", "svd", "X"},
                  {"analyze", "all", "X", "--data", "X"},
                  {"score", "X", "--data", "X"},
                  {"pack", "X", "--out", at("y.fwy")},
                  {"quantize", "X"},
                  {"unpack", "X", "--out", at("y.safetensors")},
                  {"export", "X", "--out", at("y.safetensors")},
                  {"import", "X", "--recipe", "smoke", "--out", at("imported")},
                  {"generate", "X", "--prompt", "a", "--tokenizer", at("m.model")},
                  {"recipe", "show", "X"},
                  {"train", "X", "--data", "X", "--out", at("run")},
                  {"compress", "X", "--text", at("words.txt"), "--out", at("words.fwt")},
                  {"decompress", "X", "--in", at("words.txt"), "--out", at("words.back")},
                  {"golden", "X"}});
}

TEST_F(WrongFiles, AreCalledWhatTheyAre) {
  put_file(scratch_ / "weights.pt", "PK\x03\x04");
  for (const auto& [args, says] : std::vector<std::pair<Args, std::string>>{
           {{"generate", at("words.txt")}, "words.txt: is a file of another kind; expected a run folder, an artifact (.fwy)"},
           {{"score", at("words.txt"), "--data", at("folder")}, "is a file of another kind"},
           {{"pack", at("weights.pt"), "--out", at("y.fwy")},
            "is a file of PyTorch; expected a run folder, an artifact (.fwy) or a weight file (.safetensors); fairway import " +
                at("weights.pt") + " makes a run folder of it"},
           {{"import", at("weights.tp"), "--out", at("run")},
            "no such file or folder; expected a checkpoint of PyTorch (.pt), a published artifact (.ptz) or a weight file "
            "(.safetensors); did you mean " +
                at("weights.pt") + "?"},
           {{"import", at("m.model"), "--out", at("run")}, "m.model: is a tokenizer; expected a checkpoint of PyTorch (.pt)"},
           {{"import", at("folder"), "--out", at("run")}, "folder: is a folder without a run or shards; expected a checkpoint"},
           {{"compress", at("m.model"), "--text", at("words.txt"), "--out", at("y.fwt")},
            "m.model: is a tokenizer; expected an artifact, or a run folder with its model.fwy (fairway pack makes one)"},
           {{"compress", at("picture.pgn"), "--text", at("words.txt"), "--out", at("y.fwt")},
            "did you mean " + at("picture.png") + "?"},
           {{"score", at("folder"), at("empty")}, "empty: one name too many for score (see fairway help score)"},
           {{"score", at("folder"), "--dta", "x"}, "--dta: unknown; the nearest is --data"}}) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, testing::HasSubstr(says));
  }
}

TEST(Parts, AGroupAloneListsThem) {
  for (const auto& [group, parts] :
       std::vector<std::pair<std::string, Args>>{{"data", {"tokenize", "train-tokenizer", "inspect", "overlap", "fetch"}},
                                                 {"bench", {"step", "ops", "loader", "pack", "generate"}},
                                                 {"recipe", {"show"}}}) {
    const Outcome outcome = run_program({group});
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, testing::StartsWith("fairway: " + group + ": name one of its parts"));
    for (const std::string& part : parts) EXPECT_THAT(outcome.err, testing::HasSubstr("\n  " + part + " ")) << group;
  }
}

}  // namespace
