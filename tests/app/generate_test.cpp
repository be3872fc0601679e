// Text from an artifact: repeatable, the same on any number of threads, side by side with another, and typed at a terminal.
#include <gmock/gmock.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/world.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;

// One small run and two artifacts of it, made once.
struct Made {
  Made() {
    make_data(data);
    if (run_program(train_smoke(data, run, {"--steps", "4"})).status != 0) std::abort();
    for (const auto& [file, bits] : {std::pair{six, "6"}, std::pair{four, "4"}})
      run_json({"pack", run, "--as-published", "--set", "quant.rule=rtn", "--set", std::string("quant.matrix_bits=") + bits,
                "--out", file});
  }
  ScratchFolder scratch;
  std::string data = scratch / "data", run = scratch / "run", six = scratch / "six.fwy", four = scratch / "four.fwy";
};
const Made& made() {
  static const Made world;
  return world;
}

Args generate(const Args& more) {
  Args args{"generate", made().six, "--tokenizer", made().data + "/tokenizer.model", "--tokens", "12"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Generate, RepeatsWithItsSeedOnAnyNumberOfThreads) {
  const json text = run_json(generate({"--prompt", "the", "--seed", "3"}));
  EXPECT_EQ(text["packed"], true);
  EXPECT_EQ(text["text"], run_json(generate({"--prompt", "the", "--seed", "3", "--threads", "1"}))["text"]);
  EXPECT_EQ(text["text"], run_json(generate({"--prompt", "the", "--seed", "3", "--threads", "3"}))["text"]);
  EXPECT_NE(text["text"], run_json(generate({"--prompt", "the", "--seed", "4"}))["text"]);
}

TEST(Generate, PacksNothingOfARunFolder) {
  Args args = generate({"--prompt", "the"});
  args[1] = made().run;
  EXPECT_EQ(run_json(args)["packed"], false);
}

TEST(Generate, StreamsWhatJsonTells) {
  const std::string told = run_json(generate({"--prompt", "the"}))["text"].get<std::string>();
  EXPECT_EQ(run_program(generate({"--prompt", "the"})).out, "the" + told + "\n");
  EXPECT_EQ(run_program(generate({"--prompt", "the", "--quiet"})).out, "the" + told + "\n");
}

TEST(Generate, ComparesTwoArtifacts) {
  const json same = run_json(generate({"--prompt", "the", "--compare", made().six}));
  EXPECT_EQ(same["match"], 1.0);
  EXPECT_EQ(same["overlap"], 1.0);
  EXPECT_EQ(same["text"], same["other"]["text"]);
  const json two = run_json(generate({"--prompt", "the", "--compare", made().four}));
  EXPECT_EQ(two["text"], same["text"]);
  EXPECT_THAT(run_program(generate({"--prompt", "the", "--compare", made().four})).out, HasSubstr(" | "));
}

TEST(Generate, RefusesWhatCannotBe) {
  const std::vector<std::pair<Args, std::string>> cases{
      {generate({"--top-p", "1.5"}), "--top-p"},
      {generate({"--top-p", "nan"}), "--top-p"},
      {generate({"--top-k", "-1"}), "--top-k"},
      {generate({"--temperature", "hot"}), "--temperature"},
      {generate({"--compare", made().data + "/none.fwy"}), "none.fwy"},
      {generate({"--recipe", "smoke"}), "--recipe"},
      {generate({"--context", "0"}), "--context"},
      {{"bench", "generate", made().data + "/none.fwy"}, "none.fwy"},
      {{"bench", "generate", made().run + "/recipe.toml"}, "not a Fairway artifact"},
      {{"bench", "generate", "--recipe", "smok"}, "smok"},
  };
  for (const auto& [args, says] : cases) {
    const auto result = run_program(args);
    EXPECT_EQ(result.status, 2) << says;
    EXPECT_THAT(result.err, HasSubstr(says));
  }
}

TEST(Generate, IsTimedAfterItsLogitsAreChecked) {
  const json bench = run_json({"bench", "generate", made().six, "--tokens", "16", "--texts", "2"});
  for (const char* field : {"tokens_per_second", "first_token_ms", "gb_per_s", "speed_of_light"})
    EXPECT_GT(bench[field].get<double>(), 0) << field;
  EXPECT_LE(bench["logit_error"].get<double>(), 3e-5);
}

// The program at a terminal of its own.
class Terminal {
 public:
  explicit Terminal(Args args) {
    child_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (child_ != 0) return;
    args.insert(args.begin(), FAIRWAY_PROGRAM);
    std::vector<char*> words;
    for (std::string& word : args) words.push_back(word.data());
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(99);
  }
  ~Terminal() { close(fd_); }
  void type(const std::string& text) const {
    EXPECT_EQ(write(fd_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // Reads until `wanted` has come after what was read before.
  bool shows(const std::string& wanted) {
    char buffer[4096];
    while (seen_.find(wanted, from_) == std::string::npos) {
      const ssize_t count = read(fd_, buffer, sizeof buffer);
      if (count <= 0) return false;
      seen_.append(buffer, static_cast<size_t>(count));
    }
    from_ = seen_.find(wanted, from_) + wanted.size();
    return true;
  }
  int status() const {
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int fd_ = -1;
  pid_t child_ = -1;
  std::string seen_;
  size_t from_ = 0;
};

TEST(Generate, ContinuesLinesTypedAtATerminalUntilItsEnd) {
  Terminal terminal(generate({}));
  ASSERT_TRUE(terminal.shows("> "));
  for (int line = 0; line < 2; ++line) {
    terminal.type("the\n");
    ASSERT_TRUE(terminal.shows("tokens/s]"));
    ASSERT_TRUE(terminal.shows("> "));
  }
  terminal.type("\x04");
  EXPECT_EQ(terminal.status(), 0);
}

TEST(Generate, EndsAtAnInterruptOfThePrompt) {
  Terminal terminal(generate({}));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("the\n");
  ASSERT_TRUE(terminal.shows("tokens/s]"));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("\x03");
  EXPECT_EQ(terminal.status(), 130);
}

}  // namespace
