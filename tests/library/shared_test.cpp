// The shared library shows what its header declares and nothing else, and C programs use it.
#include <regex>
#include <set>

#include "library/made_artifact.h"
#include "supply/command_text.h"

namespace fairway {
namespace {

std::set<std::string> matches(const std::string& text, const std::string& form) {
  const std::regex pattern(form);
  std::set<std::string> out;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it)
    out.insert((*it)[1]);
  return out;
}

TEST(SharedLibrary, ShowsWhatItsHeaderDeclares) {
  const std::string header = read_file(FAIRWAY_SOURCE_DIR "/include/fairway/fairway.h");
  const std::set<std::string> declared = matches(header, "FAIRWAY_API [^;]*?(fairway_\\w+)\\(");
  EXPECT_GT(declared.size(), 15U);
  EXPECT_EQ(matches(command_text("nm -D --defined-only '" FAIRWAY_SHARED "'"), " (\\S+)\n"), declared);
  const std::string facts = command_text("readelf -dW '" FAIRWAY_SHARED "'");
  EXPECT_NE(facts.find("Library soname: [libfairway.so.0]"), std::string::npos) << facts;
  EXPECT_EQ(facts.find("libmpi"), std::string::npos) << "reading an artifact needs no MPI";
}

TEST(SharedLibrary, RunsTheExampleOfThePage) {
  const TestFile file("example.fwy", made_artifact().bytes);
  const Handle artifact = open_bytes(made_artifact().bytes);
  fairway_sampling sampling = fairway_default_sampling();
  sampling.tokens = 20;
  const std::string told = command_text("'" FAIRWAY_EXAMPLE "' '" + file.path() + "' 'the wind'");
  EXPECT_NE(told.find(std::to_string(made_artifact().model.tensors.size()) + " tensors; embed.token: 300 x 16\n"),
            std::string::npos)
      << told;
  EXPECT_TRUE(told.ends_with("\n" + text_of(artifact.get(), "the wind", sampling) + "\n")) << told;
  const std::string page = read_file(FAIRWAY_SOURCE_DIR "/docs/library.md");
  EXPECT_NE(page.find("```c\n" + read_file(FAIRWAY_SOURCE_DIR "/tests/library/example.c") + "```\n"), std::string::npos)
      << "docs/library.md has another example than tests/library/example.c";
}

}  // namespace
}  // namespace fairway
