// make wheel: the same bytes twice, small, honest about the systems it is for, and a package whose Python tests pass in a fresh
// virtual environment.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "supply/command_text.h"

namespace {

namespace fs = std::filesystem;
constexpr uintmax_t kMostWheelBytes = 30'000'000;

std::string whole_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

fs::path only_file_of(const fs::path& folder) {
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1) << folder;
  return fs::directory_iterator(folder)->path();
}

// Runs a command of the sources; its exit status, and what it said in `log`.
int run_script(const std::string& command, const fs::path& log) {
  const std::string whole =
      "cd '" FAIRWAY_SOURCE_DIR "' && export SOURCE_DATE_EPOCH=1700000000 && " + command + " >'" + log.string() + "' 2>&1";
  return WEXITSTATUS(std::system(whole.c_str()));
}

TEST(Wheel, IsReproducibleAndPassesItsTestsInAFreshEnvironment) {
  if (!fs::exists(FAIRWAY_BINARY_DIR "/lib/portable/libfairway.so")) GTEST_SKIP() << "a build with CUDA makes no wheel";
  const fs::path folder = fs::path(testing::TempDir()) / "fairway-wheels", log = folder / "log";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string make = "scripts/wheel '" FAIRWAY_BINARY_DIR "' '" + folder.string();
  const int made = run_script(make + "/a'", log);
  if (made == 3) GTEST_SKIP() << whole_file(log);
  ASSERT_EQ(made, 0) << whole_file(log);
  const fs::path wheel = only_file_of(folder / "a");
  EXPECT_LE(fs::file_size(wheel), kMostWheelBytes);
  EXPECT_TRUE(std::regex_match(wheel.filename().string(),
                               std::regex("fairway-[0-9.]+-cp3[0-9]+-(abi3|cp3[0-9]+)-manylinux_2_35_x86_64.whl")))
      << wheel;
  // Another mask, time zone and moment, in other temporary folders, and compiled again.
  ASSERT_EQ(run_script("umask 077 && TZ=Asia/Tokyo CCACHE_RECACHE=1 " + make + "/b'", log), 0) << whole_file(log);
  EXPECT_TRUE(whole_file(wheel) == whole_file(only_file_of(folder / "b"))) << "a second wheel differs";

  const int checked = run_script("scripts/check-wheel '" + wheel.string() + "'", log);
  const std::string said = whole_file(log);
  fs::remove_all(folder);
  if (checked == 3) GTEST_SKIP() << said;
  EXPECT_EQ(checked, 0) << said;
  EXPECT_NE(said.find("\nOK"), std::string::npos) << said;
}

}  // namespace
