// make package: the same bytes twice, small, with no needs beyond those of Debian 12 and Ubuntu 22.04, and a program that works
// in a root that has nothing else.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "supply/command_text.h"

namespace {

namespace fs = std::filesystem;
constexpr uintmax_t kMostBytes = 30'000'000;
const std::string kSource = FAIRWAY_SOURCE_DIR, kBuild = FAIRWAY_BINARY_DIR;

std::string bytes_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::set<std::string> matches(const std::string& text, const std::string& form) {
  const std::regex pattern(form);
  std::set<std::string> out;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it)
    out.insert((*it)[1]);
  return out;
}

// "2.35" is after "2.4".
bool is_after(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  int x = 0, y = 0;
  char dot = 0;
  while (left >> x) {
    if (!(right >> y)) return true;
    if (x != y) return x > y;
    left >> dot, right >> dot;
  }
  return false;
}

// Packages are made once for all that is asked of them: compressing takes most of the time.
class Packages {
 public:
  Packages() {
    folder_ = fs::path(testing::TempDir()) / "fairway-packages";
    fs::remove_all(folder_);
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    command_text("cd '" + kSource + "' && scripts/package '" + kBuild + "' '" + (folder_ / "a").string() + "'");
    for (const auto& entry : fs::directory_iterator(folder_ / "a")) {
      if (entry.path().extension() == ".deb") deb_ = entry.path();
      if (entry.path().extension() == ".gz") archive_ = entry.path();
    }
    command_text("mkdir '" + (folder_ / "moved").string() + "' && tar -C '" + (folder_ / "moved").string() +
                 "' --strip-components=1 -xzf '" + archive_.string() + "'");
  }
  ~Packages() { fs::remove_all(folder_); }
  void are_the_same_bytes_twice() const;
  void need_what_every_system_has() const;
  void run_from_any_folder() const;
  void work_in_a_clean_root() const;

 private:
  fs::path folder_, deb_, archive_;
};

void Packages::are_the_same_bytes_twice() const {
  // Another mask, time zone, language, place and moment.
  command_text("cd '" + kSource + "' && umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 scripts/package '" + kBuild + "' '" +
               (folder_ / "b").string() + "'");
  for (const fs::path& file : {deb_, archive_}) {
    EXPECT_LE(fs::file_size(file), kMostBytes) << file;
    EXPECT_TRUE(bytes_of(file) == bytes_of(folder_ / "b" / file.filename())) << file << " differs when it is made again";
  }
}

void Packages::need_what_every_system_has() const {
  const std::set<std::string> everywhere{
      "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
  for (const char* file :
       {"bin/fairway", "lib/libfairway.so.0", "lib/fairway/libsentencepiece.so.0", "lib/fairway/libsentencepiece_train.so.0"}) {
    const std::string path = (folder_ / "moved" / file).string();
    for (const std::string& name : matches(command_text("readelf -dW '" + path + "'"), "\\(NEEDED\\).*\\[(.*)\\]"))
      EXPECT_TRUE(everywhere.contains(name) || fs::exists(folder_ / "moved/lib/fairway" / name)) << file << " needs " << name;
    const std::string symbols = command_text("objdump -T '" + path + "'");
    for (const auto& [form, newest] : {std::pair("GLIBC_([0-9.]+)", "2.35"), std::pair("GLIBCXX_([0-9.]+)", "3.4.30"),
                                       std::pair("CXXABI_([0-9.]+)", "1.3.13")})
      for (const std::string& version : matches(symbols, form))
        EXPECT_FALSE(is_after(version, newest))
            << file << " needs " << form << " = " << version << "; Ubuntu 22.04 has " << newest;
  }
  EXPECT_TRUE(is_after("2.36", "2.35"));
  EXPECT_FALSE(is_after("2.4", "2.35"));
}

void Packages::run_from_any_folder() const {
  const fs::path moved = folder_ / "moved";
  EXPECT_EQ(bytes_of(moved / "bin/fairway").find(kSource + "/"), std::string::npos)
      << "another folder of sources would give another program";
  EXPECT_EQ(command_text("'" + (moved / "bin/fairway").string() + "' --version"),
            command_text("'" FAIRWAY_PROGRAM "' --version"));
  EXPECT_EQ(bytes_of(moved / "lib/libfairway.so.0").find(kSource + "/"), std::string::npos);
  for (const auto& [file, way] :
       {std::pair("bin/fairway", "/bin/../lib/fairway"), std::pair("lib/libfairway.so.0", "/lib/fairway")}) {
    const std::string libraries = command_text("ldd '" + (moved / file).string() + "'");
    EXPECT_NE(libraries.find(fs::canonical(moved).string() + way + "/libsentencepiece.so.0"), std::string::npos)
        << file << ": the carried library is not the one that is used:\n"
        << libraries;
  }
  for (const char* file : {"share/man/man1/fairway.1.gz", "share/doc/fairway/copyright", "share/doc/fairway/CHANGELOG.md"})
    EXPECT_TRUE(fs::exists(moved / file)) << file;
  const std::string version = command_text("'" FAIRWAY_PROGRAM "' --version").substr(8);
  EXPECT_NE(bytes_of(moved / "share/doc/fairway/CHANGELOG.md").find("\n## " + version), std::string::npos)
      << "CHANGELOG.md does not tell of " << version;
}

void Packages::work_in_a_clean_root() const {
  const std::string log = (folder_ / "log").string();
  const int state =
      std::system(("cd '" + kSource + "' && scripts/check-package '" + deb_.string() + "' >'" + log + "' 2>&1").c_str());
  if (WEXITSTATUS(state) == 3) GTEST_SKIP() << bytes_of(log);
  EXPECT_EQ(WEXITSTATUS(state), 0) << bytes_of(log);
  EXPECT_NE(bytes_of(log).find("legal      true"), std::string::npos) << bytes_of(log);
  EXPECT_NE(bytes_of(log).find("\nA run "), std::string::npos) << bytes_of(log);
}

TEST(Package, IsReproducibleAndRunsElsewhere) {
  if (!fs::exists(kBuild + "/lib/portable/libfairway.so"))
    GTEST_SKIP() << "of a build with CUDA, scripts/package checks its needs";
  const Packages packages;
  packages.are_the_same_bytes_twice();
  packages.need_what_every_system_has();
  packages.run_from_any_folder();
  packages.work_in_a_clean_root();
}

}  // namespace
