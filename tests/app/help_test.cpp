// Help, completion and the manual page cover the whole tree of commands.
#include <gmock/gmock.h>

#include <cstdio>
#include <sstream>

#include "app/world.h"

namespace {

using testing::HasSubstr;

struct Shell {
  int status = -1;
  std::string out;
};
Shell shell(const std::string& command) {
  Shell result;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char piece[4096];
  for (size_t n = 0; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) result.out.append(piece, n);
  result.status = pclose(pipe);
  return result;
}

const std::string kProgram = FAIRWAY_PROGRAM;

// What bash offers for the words of a command line; the last one is being typed.
std::string bash_offers(const std::string& words) {
  const ScratchFolder scratch;
  put_file(scratch / "offers.sh", "source <('" + kProgram + "' completion bash)\nCOMP_WORDS=(" + words +
                                      ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_fairway\necho \" ${COMPREPLY[*]} \"\n");
  const Shell result = shell("bash '" + (scratch / "offers.sh").string() + "'");
  EXPECT_EQ(result.status, 0) << result.out;
  return result.out;
}

std::vector<std::string> commands() {
  std::istringstream words(bash_offers("fairway ''"));
  std::vector<std::string> out;
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

TEST(Help, EveryCommandHasHelpAndAnExample) {
  const std::vector<std::string> all = commands();
  for (const char* known :
       {"run",        "train",  "data",   "quantize", "pack",  "unpack",  "score",  "audit",  "generate",   "compare", "report",
        "submission", "export", "import", "golden",   "bench", "recipes", "recipe", "doctor", "completion", "man"})
    EXPECT_THAT(all, testing::Contains(known));
  for (const std::string& command : all) {
    const nlohmann::json help = run_json({"help", command});
    EXPECT_FALSE(help["help"].get<std::string>().empty()) << command;
    ASSERT_FALSE(help["examples"].empty()) << "fairway " << command << " has no example in src/app/examples.cpp";
    for (const nlohmann::json& example : help["examples"])
      EXPECT_THAT(example.get<std::string>(), testing::StartsWith("fairway " + command));
  }
  EXPECT_THAT(run_program({"help", "data", "tokenize"}).out, HasSubstr("examples:\n  fairway data tokenize"));
}

TEST(Help, AMistypedCommandIsTold) {
  const Outcome outcome = run_program({"help", "trian"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the nearest is train"));
}

TEST(Completion, OffersCommandsFlagsAndTheirWords) {
  EXPECT_THAT(bash_offers("fairway tr"), HasSubstr(" train "));
  EXPECT_THAT(bash_offers("fairway data tok"), HasSubstr(" tokenize "));
  EXPECT_THAT(bash_offers("fairway run --se"), HasSubstr(" --seconds --seed "));
  EXPECT_THAT(bash_offers("fairway score x --mode sl"), HasSubstr(" sliding sliding+tilt slot slot+tilt "));
  EXPECT_THAT(bash_offers("fairway run pr11"), HasSubstr(" pr1105-early pr1105 "));
  EXPECT_THAT(bash_offers("fairway completion ''"), HasSubstr(" bash zsh fish "));
}

TEST(Completion, ScriptsAreSoundInTheirShells) {
  EXPECT_EQ(run_program({"completion", "tcsh"}).status, 2);
  for (const char* name : {"bash", "zsh", "fish"}) {
    const Outcome script = run_program({"completion", name});
    EXPECT_EQ(script.status, 0) << script.text();
    EXPECT_THAT(script.out, HasSubstr("tokenize"));
    if (shell(std::string("command -v ") + name).status != 0) continue;  // not installed
    const Shell parsed = shell("'" + kProgram + "' completion " + name + " | " + name + " -n");
    EXPECT_EQ(parsed.status, 0) << name << ": " << parsed.out;
    EXPECT_EQ(parsed.out, "") << name;
  }
}

TEST(Manual, IsSoundRoffWithEveryCommand) {
  const Outcome page = run_program({"man"});
  for (const std::string& command : commands()) EXPECT_THAT(page.out, HasSubstr(".SS fairway " + command)) << command;
  if (shell("command -v groff").status != 0) GTEST_SKIP() << "no groff";
  const Shell warned = shell("'" + kProgram + "' man | groff -man -Tutf8 -ww > /dev/null");
  EXPECT_EQ(warned.out, "");
}

}  // namespace
