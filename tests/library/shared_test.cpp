// The shared library shows what its header declares and nothing else, and C programs use it.
#include <set>
#include <sstream>

#include "library/made_artifact.h"
#include "supply/command_text.h"

namespace fairway {
namespace {

// The last word of each line.
std::set<std::string> last_words(const std::string& text) {
  std::set<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out.insert(line.substr(line.rfind(' ') + 1));
  return out;
}

// What stands before the first bracket after each FAIRWAY_API.
std::set<std::string> declared_functions(const std::string& header) {
  const std::string mark = "\nFAIRWAY_API ";
  std::set<std::string> out;
  for (size_t at = header.find(mark); at != std::string::npos; at = header.find(mark, at + 1)) {
    const std::string line = header.substr(at + 1, header.find('(', at) - at - 1);
    out.insert(line.substr(line.find_last_of(" *") + 1));
  }
  return out;
}

TEST(SharedLibrary, ShowsWhatItsHeaderDeclares) {
  const std::string header = read_file(FAIRWAY_SOURCE_DIR "/include/fairway/fairway.h");
  const std::set<std::string> declared = declared_functions(header);
  EXPECT_GT(declared.size(), 15U);
  EXPECT_EQ(last_words(command_text("nm -D --defined-only '" FAIRWAY_SHARED "'")), declared);
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
