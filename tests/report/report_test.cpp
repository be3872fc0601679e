// The page holds the run's numbers, survives hostile text, and draws in a browser without an error where one is installed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/error.h"
#include "recipe/recipe.h"
#include "report/page.h"
#include "report/run_data.h"
#include "report/tensorboard.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

class Report : public testing::Test {
 protected:
  Report() : folder_(fs::temp_directory_path() / ("fairway_report_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    write("recipe.toml", to_toml(load_recipe("smoke")));
    std::string metrics, timing;
    for (int step = 1; step <= kSteps; ++step) {
      metrics += R"({"step":)" + std::to_string(step) + R"(,"loss":)" + std::to_string(8.0 - 0.001 * step) +
                 R"(,"grad_norm":0.5,"lr_scale":1,"momentum":0.9})" + "\n";
      timing += R"({"step":)" + std::to_string(step) + R"(,"train_seconds":)" + std::to_string(0.25 * step) +
                R"(,"step_ms":250,"data_wait_seconds":0})" + "\n";
    }
    write("metrics.jsonl", metrics + R"({"step":1200,"val_loss":6.75,"val_bpb":3.5})" + "\n{\"step\":12");  // cut by a kill
    write("timing.jsonl", timing);
  }
  ~Report() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  static constexpr int kSteps = 1200;
  fs::path folder_;
};

std::string output_of(const std::string& command) {
  std::string out;
  std::FILE* pipe = popen(command.c_str(), "r");
  char piece[4096];
  for (size_t n = 0; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) out.append(piece, n);
  pclose(pipe);
  return out;
}

TEST_F(Report, GathersCurvesWithinTheirLimit) {
  const nlohmann::ordered_json run = read_run(folder_);
  EXPECT_EQ(run["summary"]["steps"], kSteps);
  EXPECT_DOUBLE_EQ(run["summary"]["val_bpb"].get<double>(), 3.5);
  EXPECT_DOUBLE_EQ(run["summary"]["train_seconds"].get<double>(), 300);
  EXPECT_EQ(run["curve"]["loss"].size(), 400U);  // means of three
  EXPECT_NEAR(run["curve"]["loss"][0].get<double>(), 8.0 - 0.002, 1e-9);
  EXPECT_EQ(run["curve"]["step"].back(), kSteps);
  EXPECT_EQ(run["validation"].size(), 1U);
}

TEST_F(Report, RefusesAFolderWithoutARunAndBrokenFiles) {
  EXPECT_THROW(read_run(folder_ / "absent"), InputError);
  write("score.json", "not JSON");
  EXPECT_THROW(read_run(folder_), InputError);
}

TEST_F(Report, TextCannotEndThePagesScript) {
  write("samples.json", R"([{"prompt":"</script><script>alert(1)</script>","text":"<!-- \u2028 &amp;"}])");
  const std::vector<fs::path> folders{folder_};
  const std::string page = report_page(report_data(folders, false));
  const size_t data = page.find("id=\"data\"");
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_NE(page.find("</script>", data), std::string::npos);
  EXPECT_LT(page.size(), 1'500'000U);
  EXPECT_EQ(page.find("@DATA@"), std::string::npos);
  for (const char* outside : {"http://", "https://", "src="}) {
    size_t found = 0, at = 0;
    while ((at = page.find(outside, at)) != std::string::npos) ++found, ++at;
    EXPECT_LE(found, std::string(outside) == "http://" ? 1U : 0U)
        << outside << ": only the SVG namespace may look like an address";
  }
}

TEST_F(Report, DrawsItsDataInABrowser) {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0) GTEST_SKIP() << "chromium is not installed";
  write("pack.json", R"({"artifact_bytes":600,"ledger":[{"name":"bank.up","bytes":400},{"name":"header","bytes":200}],
    "tensors":[{"name":"bank.up[0]","bits":6,"loss":0.125}]})");
  write("score.json", R"([{"mode":"plain","val_loss":6.75,"val_bpb":3.5,"tokens":10,"seconds":1,"legal":true},
    {"mode":"slot-published","val_loss":6,"val_bpb":3.1,"tokens":10,"seconds":1,"legal":false}])");
  const std::vector<fs::path> folders{folder_};
  write("report.html", report_page(report_data(folders, false)));
  const std::string log = (folder_ / "browser.log").string();
  const std::string dom =
      output_of("timeout 100 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --user-data-dir=" +
                (folder_ / "profile").string() + " --window-size=390,900 --virtual-time-budget=2000 --dump-dom file://" +
                (folder_ / "report.html").string() + " 2>" + log);
  EXPECT_TRUE(std::regex_search(dom, std::regex("data-name=\"loss\" data-last=\"6\\.80[01][0-9]*\" data-count=\"400\"")));
  EXPECT_NE(dom.find("data-total=\"600\""), std::string::npos);
  EXPECT_NE(dom.find("data-bytes=\"400\" data-name=\"bank.up\""), std::string::npos);
  EXPECT_NE(dom.find("data-value=\"0.125\" data-name=\"bank.up[0]\""), std::string::npos);
  EXPECT_TRUE(std::regex_search(dom, std::regex("3\\.5</td>")));
  EXPECT_NE(dom.find("<span class=\"no\">illegal</span>"), std::string::npos);
  std::ifstream in(log);
  const std::string said((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(said.find("CONSOLE"), std::string::npos) << said;
}

TEST(TensorBoard, FramesRecordsWithTheirChecksums) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EventFile events(0);
  const size_t header = events.bytes().size();
  events.scalar("loss", 7, 1.5, 2.25F);
  const std::string record = events.bytes().substr(header);
  const std::string body = record.substr(12, record.size() - 16);
  EXPECT_EQ(static_cast<uint8_t>(record[0]), body.size());
  // wall_time (fixed64), step (varint 7), summary{value{tag "loss", simple_value 2.25}}.
  EXPECT_EQ(body,
            std::string("\x09\x00\x00\x00\x00\x00\x00\xF8\x3F\x10\x07\x2A\x0D\x0A\x0B\x0A\x04loss\x15\x00\x00\x10\x40", 26));
}

TEST_F(Report, TensorBoardFileIsTheSameBytesAgain) {
  const fs::path path = write_tensorboard(folder_, folder_ / "events");
  const auto size = fs::file_size(path);
  std::ifstream in(path);
  const std::string first((std::istreambuf_iterator<char>(in)), {});
  write_tensorboard(folder_, folder_ / "events");
  std::ifstream again(path);
  EXPECT_EQ(first, std::string((std::istreambuf_iterator<char>(again)), {}));
  EXPECT_GT(size, 4U * kSteps * 30);
}

}  // namespace
}  // namespace fairway
