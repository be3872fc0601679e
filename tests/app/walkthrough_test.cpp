// docs/walkthrough.md and docs/your-own-idea.md, followed by the letter: their commands run in a folder that has what a fresh
// clone has, and leave what the text promises. A step that is missing there fails here.
#include <gmock/gmock.h>

#include <regex>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;

// The lines of the fenced blocks marked "sh", in order.
std::string commands_in(const std::string& markdown) {
  std::string commands;
  const std::regex block("\n```sh\n([^`]*)```");
  for (auto at = std::sregex_iterator(markdown.begin(), markdown.end(), block); at != std::sregex_iterator(); ++at)
    commands += (*at)[1].str();
  return commands;
}

// Runs the page's commands in a folder that has what a fresh clone has. Every step must be among them, and every file that
// the text names in runs/ must be there afterwards.
void follow(const std::string& page, const std::vector<const char*>& steps, int least_files) {
  const ScratchFolder clone;
  const Path source = FAIRWAY_SOURCE_DIR;
  for (const char* part : {"README.md", "docs", "src", "recipes"}) fs::create_symlink(source / part, clone / part);
  fs::create_directories(clone / "build");
  fs::create_symlink(Path(FAIRWAY_PROGRAM).parent_path(), clone / "build" / "bin");
  const std::string markdown = contents(source / "docs" / page), commands = commands_in(markdown);
  for (const char* step : steps)
    EXPECT_THAT(commands, testing::HasSubstr(std::string("fairway ") + step)) << page << " has no such step";
  put_file(clone / "steps.sh", "set -eux\n" + commands);
  const std::string command = "cd '" + clone.path().string() + "' && bash steps.sh > log 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << contents(clone / "log");
  const std::regex named("`(runs/[^` *]*)`");
  int files = 0;
  for (auto at = std::sregex_iterator(markdown.begin(), markdown.end(), named); at != std::sregex_iterator(); ++at, ++files)
    EXPECT_TRUE(fs::exists(clone / (*at)[1].str())) << (*at)[1];
  EXPECT_GE(files, least_files);
}

TEST(Walkthrough, ItsCommandsWorkFromTextToSubmission) {
  follow("walkthrough.md",
         {"data train-tokenizer", "data tokenize", "data inspect", "train", "pack", "score", "audit", "report", "generate",
          "run", "compare", "submission", "submission --check"},
         5);
}

TEST(YourOwnIdea, ItsCommandsWorkFromASentenceToANumber) {
  follow("your-own-idea.md",
         {"recipe diff", "train runs/idea/faster.toml", "score runs/idea/try --mode", "generate runs/idea/try ", "compare",
          "report", "pack"},
         3);
}

}  // namespace
