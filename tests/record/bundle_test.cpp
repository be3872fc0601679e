// The sources that a submission ships: few enough, only what a record needs, and, built in an empty folder, a program that
// makes the same artifact and the same score as the one that carries them.
#include <gmock/gmock.h>

#include <fstream>

#include "app/world.h"
#include "bundle/code_bytes.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMostBytes = FAIRWAY_MOST_BYTES;  // kernels of a device take more than the CPU's

int shell(const std::string& command) { return std::system(command.c_str()); }
std::string shell_word(const Path& path) { return "'" + path.string() + "'"; }

void unpack(const Path& folder) {
  const std::string_view bytes = fairway::source_bundle();
  std::ofstream(folder / "source.7z", std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_EQ(shell("cd " + shell_word(folder) + " && " + fairway::kUnpackSources), 0);
}

TEST(Bundle, HoldsWhatARecordNeedsAndIsSmall) {
  EXPECT_EQ(fairway::code_bytes(), static_cast<int64_t>(fairway::source_bundle().size()));
  EXPECT_LE(fairway::code_bytes(), kMostBytes);
  const ScratchFolder scratch;
  unpack(scratch / ".");
  for (const char* needed : {"CMakeLists.txt", "src/record/main.cpp", "src/train/loop.cpp", "src/pack/fit.cpp"})
    EXPECT_TRUE(fs::exists(scratch / "source" / needed)) << needed;
  for (const char* other :
       {"src/app", "src/report", "src/bench", "src/pipeline", "src/audit", "src/ops/ref/attention.cpp", "recipes"})
    EXPECT_FALSE(fs::exists(scratch / "source" / other)) << other;
}

TEST(Bundle, BuildsToAProgramThatMakesTheSameBytesAndScore) {
  const ScratchFolder scratch;
  unpack(scratch / ".");
  const std::string launcher = FAIRWAY_LAUNCHER;
  const std::string build = "cd " + shell_word(scratch / "source") +
                            " && cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release " +
                            (launcher.empty() ? "" : "-DCMAKE_CXX_COMPILER_LAUNCHER=" + launcher) +
                            " > log 2>&1 && cmake --build build >> log 2>&1 || { tail -40 log; false; }";
  ASSERT_EQ(shell(build), 0);

  make_data(scratch / "data");
  const std::string data = (scratch / "data").string(), recipe = (scratch / "recipe.toml").string();
  put_file(recipe, run_program({"recipe", "show", "smoke"}).out);
  run_json({"run", recipe, "--data", data, "--out", (scratch / "run").string(), "--seed", "3", "--threads", "2"});
  const json packed = json::parse(contents(scratch / "run" / "pack.json"));
  const std::string record = shell_word(scratch / "source/build/bin/fairway-record") + " " + shell_word(recipe) + " --data " +
                             shell_word(data) + " --out " + shell_word(scratch / "record") + " --seed 3 --threads 2 --budget " +
                             packed["budget"].dump() + " > " + shell_word(scratch / "result.json");
  ASSERT_EQ(shell(record), 0);
  EXPECT_TRUE(contents(scratch / "record" / "model.fwy") == contents(scratch / "run" / "model.fwy"));
  const json made = json::parse(contents(scratch / "result.json")),
             want = json::parse(contents(scratch / "run" / "score.json"));
  EXPECT_EQ(made["val_bpb"], want["val_bpb"]);
  EXPECT_EQ(made["val_loss"], want["val_loss"]);
  EXPECT_EQ(made["artifact_bytes"], packed["artifact_bytes"]);
}

}  // namespace
