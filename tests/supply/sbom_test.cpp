// The list of what the program is made of (scripts/sbom): in SPDX's shape, whole, and the same each time.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "supply/command_text.h"

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string sbom_text() { return command_text("'" FAIRWAY_SOURCE_DIR "/scripts/sbom' '" FAIRWAY_BINARY_DIR "'"); }
bool on_debian() { return std::system("command -v dpkg-query >/dev/null 2>&1 && command -v ninja >/dev/null 2>&1") == 0; }

std::set<std::string> names_of(const json& sbom) {
  std::set<std::string> names;
  for (const json& package : sbom.at("packages")) names.insert(package.at("name").get<std::string>());
  return names;
}

TEST(Sbom, HasTheShapeOfSpdx) {
  if (!on_debian()) GTEST_SKIP() << "packages are Debian's";
  const json sbom = json::parse(sbom_text(), nullptr, false);
  ASSERT_FALSE(sbom.is_discarded());
  EXPECT_EQ(sbom.at("spdxVersion"), "SPDX-2.3");
  EXPECT_EQ(sbom.at("dataLicense"), "CC0-1.0");
  EXPECT_EQ(sbom.at("SPDXID"), "SPDXRef-DOCUMENT");
  EXPECT_TRUE(std::regex_match(sbom.at("documentNamespace").get<std::string>(),
                               std::regex("https://[^ #]+fairway-[0-9.]+-[0-9a-f]{64}")));
  EXPECT_TRUE(std::regex_match(sbom.at("creationInfo").at("created").get<std::string>(),
                               std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")));
  EXPECT_THAT(sbom.at("creationInfo").at("creators"), testing::Not(testing::IsEmpty()));
  std::set<std::string> ids{"SPDXRef-DOCUMENT"};
  for (const json& package : sbom.at("packages")) {
    const std::string id = package.at("SPDXID");
    EXPECT_TRUE(std::regex_match(id, std::regex("SPDXRef-[A-Za-z0-9.-]+"))) << id;
    EXPECT_TRUE(ids.insert(id).second) << id << " twice";
    EXPECT_FALSE(package.at("versionInfo").get<std::string>().empty()) << id;
    EXPECT_FALSE(package.at("filesAnalyzed").get<bool>()) << id;
    for (const char* key : {"downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"})
      EXPECT_FALSE(package.at(key).get<std::string>().empty()) << id << " " << key;
  }
  std::set<std::string> tied;
  for (const json& tie : sbom.at("relationships")) {
    for (const char* end : {"spdxElementId", "relatedSpdxElement"}) {
      EXPECT_TRUE(ids.contains(tie.at(end).get<std::string>())) << tie;
      tied.insert(tie.at(end).get<std::string>());
    }
    EXPECT_THAT(tie.at("relationshipType"), testing::AnyOf("DESCRIBES", "DYNAMIC_LINK", "BUILD_DEPENDENCY_OF"));
  }
  EXPECT_EQ(tied, ids) << "something is listed and nothing says why";
}

// The program's own libraries, asked of the dynamic linker, and those that are headers only.
TEST(Sbom, NamesWhatIsLinkedAndWhatIsCompiledIn) {
  if (!on_debian()) GTEST_SKIP() << "packages are Debian's";
  const std::string text = sbom_text();
  const std::set<std::string> names = names_of(json::parse(text));
  EXPECT_THAT(names, testing::IsSupersetOf({"fairway", "nlohmann-json3-dev", "libcli11-dev", "libtomlplusplus-dev",
                                            "libfmt-dev", "libc6", "libstdc++6"}));
  const std::string libraries = command_text("ldd '" FAIRWAY_PROGRAM "' | awk '$3 ~ /^\\// { print $3 }'");
  std::istringstream lines(libraries);
  int asked = 0;
  for (std::string library; std::getline(lines, library); ++asked) {
    const std::string real = fs::canonical(library);
    const std::string packages = command_text("dpkg-query -S '" + real + "' 2>/dev/null || dpkg-query -S '" +
                                              (real.starts_with("/usr/") ? real.substr(4) : "/usr" + real) + "'");
    EXPECT_TRUE(names.contains(packages.substr(0, packages.find(':')))) << library << ": " << packages;
  }
  EXPECT_GT(asked, 8);
  const std::string sum = command_text("sha256sum '" FAIRWAY_PROGRAM "'").substr(0, 64);
  EXPECT_THAT(text, testing::HasSubstr("\"checksumValue\": \"" + sum + "\""));
  EXPECT_EQ(sbom_text(), text) << "a second list differs";
}

std::string contents_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Debian's packages carry the archive's signature; whatever else a script fetches has a version and a hash.
TEST(Fetched, IsPinnedByVersionAndHash) {
  const std::regex fetches("pip3? (download|install)|\\b(curl|wget) +(-|http|\"|\\$)|git clone|docker pull|npm (ci|install)");
  std::vector<fs::path> files{FAIRWAY_SOURCE_DIR "/Makefile"};
  for (const char* folder : {"scripts", ".ci"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(FAIRWAY_SOURCE_DIR) / folder))
      if (entry.is_regular_file()) files.push_back(entry.path());
  int found = 0;
  for (const fs::path& file : files) {
    std::istringstream lines(contents_of(file));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("#") || !std::regex_search(line, fetches)) continue;
      ++found;
      EXPECT_THAT(line, testing::HasSubstr("--require-hashes")) << file;
    }
  }
  EXPECT_GT(found, 0) << "the form no longer matches what scripts/setup-cuda says";
  std::istringstream lines(contents_of(FAIRWAY_SOURCE_DIR "/scripts/setup-cuda"));
  const std::regex pinned("fetch [a-z0-9-]+==[0-9.]+ [0-9a-f]{64} .*");
  int wheels = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("fetch ")) continue;
    EXPECT_TRUE(std::regex_match(line, pinned)) << line;
    ++wheels;
  }
  EXPECT_GT(wheels, 0);
}

// The lists of scripts/wheel and scripts/check-wheel: a version and hashes in each entry, which may go over several lines.
TEST(Fetched, ListsOfPythonPackagesArePinned) {
  const std::regex pinned("[a-z0-9_-]+==[0-9a-z.]+(; python_version < \"3.11\")?( *--hash=sha256:[0-9a-f]{64})+");
  int packages = 0;
  for (const char* list : {"build", "test", "pandas"}) {
    std::string text = contents_of(FAIRWAY_SOURCE_DIR "/python/" + std::string(list) + "-requirements.txt");
    for (size_t at = 0; (at = text.find("\\\n")) != std::string::npos;) text.erase(at, 2);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("#")) continue;
      EXPECT_TRUE(std::regex_match(line, pinned)) << list << ": " << line;
      ++packages;
    }
  }
  EXPECT_GE(packages, 6);
}

}  // namespace
