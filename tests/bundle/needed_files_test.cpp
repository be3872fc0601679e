// Which files a program is made of, on made-up trees.
#include "bundle/needed_files.h"

#include <gmock/gmock.h>

#include <map>

namespace fairway::bundle {
namespace {

using testing::UnorderedElementsAre;
using Tree = std::map<std::string, std::string>;

std::set<std::string> needed(const Tree& tree) {
  std::vector<std::string> sources;
  for (const auto& [path, text] : tree) {
    if (path.ends_with(".cpp") || path.ends_with(".cu")) sources.push_back(path);
  }
  return needed_files("main.cpp", sources, [&](const std::string& path) {
    const auto found = tree.find(path);
    return found == tree.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(NeededFiles, IncludedHeadersAndTheirSources) {
  EXPECT_THAT(needed({{"main.cpp", "#include <vector>\n#include \"a/x.h\"\n"},
                      {"a/x.h", "#pragma once\n  # include \"a/y.h\"\n"},
                      {"a/x.cpp", "#include \"a/x.h\"\n#include \"b/z.h\"\n"},
                      {"a/y.h", ""},
                      {"b/z.h", ""},
                      {"b/z.cu", "#include \"b/z.h\"\n"},
                      {"b/other.h", "#include \"b/z.h\"\n"},
                      {"b/other.cpp", "#include \"b/other.h\"\n"}}),
              UnorderedElementsAre("main.cpp", "a/x.h", "a/x.cpp", "a/y.h", "b/z.h", "b/z.cu"));
}

TEST(NeededFiles, HeadersWithoutASourceAreImplementedByThoseWhoIncludeThem) {
  const Tree tree{{"main.cpp", "#include \"a/shared.h\"\n"},
                  {"a/shared.h", ""},
                  {"a/helper.h", ""},
                  {"a/helper.cpp", "#include \"a/helper.h\"\n"},
                  {"a/tools.h", ""},
                  {"a/part.cpp", "#include \"a/helper.h\"\n#include \"a/shared.h\"\n"},
                  {"a/tool.cpp", "#include \"a/helper.h\"\n#include \"a/tools.h\"\n"},
                  {"a/more.cpp", "#include \"a/helper.h\"\n"},
                  {"a/both.h", ""},
                  {"a/both.cpp", "#include \"a/both.h\"\n#include \"a/shared.h\"\n"},
                  {"b/user.cpp", "#include \"a/shared.h\"\n"}};
  EXPECT_THAT(needed(tree),
              UnorderedElementsAre("main.cpp", "a/shared.h", "a/part.cpp", "a/helper.h", "a/helper.cpp", "a/more.cpp"));
}

TEST(NeededFiles, AFolderBelowBelongsToItsLibrary) {
  Tree tree{{"main.cpp", "#include \"a/fused.h\"\n"}, {"a/fused.h", ""}, {"a/sm90/fast.cu", "#include \"a/fused.h\"\n"}};
  EXPECT_THAT(needed(tree), UnorderedElementsAre("main.cpp", "a/fused.h"));
  tree["a/CMakeLists.txt"] = "";
  EXPECT_THAT(needed(tree), UnorderedElementsAre("main.cpp", "a/fused.h", "a/sm90/fast.cu"));
}

TEST(NeededFiles, TextThatOnlyLooksLikeAnIncludeIsNone) {
  EXPECT_THAT(needed({{"main.cpp", "include \"a.h\"\n#define x \"a.h\"\n"}, {"a.h", ""}}), UnorderedElementsAre("main.cpp"));
}

}  // namespace
}  // namespace fairway::bundle
