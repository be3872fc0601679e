// make install puts the program and what belongs to it into GNU's folders, and the program runs from there.
#include <gtest/gtest.h>

#include <filesystem>

#include "supply/command_text.h"

namespace {

namespace fs = std::filesystem;

// A program in C finds the header and the library by pkg-config, and runs from anywhere in the tree.
void expect_c_programs_work(const fs::path& root) {
  for (const char* file : {"include/fairway/fairway.h", "lib/libfairway.so.0", "lib/pkgconfig/fairway.pc"})
    ASSERT_TRUE(fs::exists(root / file)) << file;
  if (std::system("command -v cc >/dev/null && command -v pkg-config >/dev/null") != 0) return;
  const std::string flags =
      command_text("PKG_CONFIG_PATH='" + (root / "lib/pkgconfig").string() + "' pkg-config --cflags --libs fairway");
  const std::string example = "'" + (root / "bin/example").string() + "' ";
  command_text("cc -std=c99 -Wall -Wextra -pedantic -Werror '" FAIRWAY_SOURCE_DIR "/tests/library/example.c' -o " + example +
               "-Wl,-rpath,'$ORIGIN/../lib' " + flags.substr(0, flags.find('\n')));
  EXPECT_NE(
      command_text(example + "'" FAIRWAY_SOURCE_DIR "/tests/artifact/version4.fwy' 2>&1 || true").find("carries no tokenizer"),
      std::string::npos);
}

TEST(Install, PutsAWorkingProgramIntoItsFolders) {
  const fs::path root = fs::path(testing::TempDir()) / "fairway-installed";
  fs::remove_all(root);
  command_text("cmake --install '" FAIRWAY_BINARY_DIR "' --prefix '" + root.string() + "'");
  for (const char* file : {"bin/fairway", "share/man/man1/fairway.1", "share/bash-completion/completions/fairway",
                           "share/zsh/site-functions/_fairway", "share/fish/vendor_completions.d/fairway.fish",
                           "share/fairway/recipes/pr1105.toml", "share/doc/fairway/LICENSE", "share/doc/fairway/README.md"}) {
    ASSERT_TRUE(fs::exists(root / file)) << file;
    EXPECT_GT(fs::file_size(root / file), 100U) << file;
  }
  const std::string program = "'" + (root / "bin/fairway").string() + "' ";
  EXPECT_EQ(command_text(program + "--version"), command_text("'" FAIRWAY_PROGRAM "' --version"));
  EXPECT_NE(command_text(program + "recipes").find("pr1105"), std::string::npos);
  if (fs::exists(FAIRWAY_BINARY_DIR "/lib/libfairway.so.0")) expect_c_programs_work(root);
  fs::remove_all(root);
}

}  // namespace
