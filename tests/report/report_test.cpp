// The page holds the run's numbers, survives hostile text, and draws in a browser without an error where one is installed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <regex>
#include <thread>

#include "base/error.h"
#include "recipe/recipe.h"
#include "report/page.h"
#include "report/run_data.h"
#include "report/serve.h"
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

TEST_F(Report, APhaseOfAnotherTypeIsNotTold) {
  for (const char* phase : {"3", "null", "[]", "\"a\"", R"({"result": 3})"}) {
    write("run.json", std::string(R"({"ledger": "run", "phases": {"train": )") + phase + "}}");
    EXPECT_FALSE(read_run(folder_)["summary"].contains("speed_of_light")) << phase;
  }
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

constexpr const char* kAnalysis = R"({"weights":"0",
  "svd":{"roles":[{"role":"Q","matrices":1,"utilization":0.726,"utilization95":0.5,"stable_rank":59.7,"condition":null}]},
  "heads":{"tokens":64,"context":32,"classes":{"published":{"induction":1,"previous":1,"positional":0,"other":0},
    "classical":{"induction":0,"previous":1,"positional":0,"other":1}},
    "heads":[{"layer":0,"pass":0,"head":0,"class":"previous","class_classical":"previous","previous":0.625,"first":0.1,
              "self":0.1,"entropy":1,"induction":0.001,"induction_classical":0.002},
             {"layer":0,"pass":0,"head":1,"class":"induction","class_classical":"other","previous":0.05,"first":0.1,
              "self":0.1,"entropy":1,"induction":0.03125,"induction_classical":0.002}]},
  "calibration":{"tokens":64,"context":32,"expected_error":0.0126,"accuracy":0.5446,"confidence":0.55,"entropy":1.847,
    "bins":[{"low":0,"high":0.5,"count":40,"confidence":0.3,"accuracy":0.25},{"low":0.5,"high":1,"count":0,"confidence":0,"accuracy":0}]},
  "lens":{"tokens":64,"context":32,"layers":[{"layer":0,"pass":0,"loss":5.5,"bpb":3,"accuracy":0.1},{"layer":1,"pass":0,"loss":4.25,"bpb":2,"accuracy":0.2}]},
  "sensitivity":{"tokens":64,"context":32,"bits":[6,5],"loss":4.25,"bpb":2,"matrices":[{"name":"bank.qo[0]","role":"Q","layer":0,"weights":16,
    "change":{"int6":{"nats":1e-5,"nats_error":1e-6,"bpb":0.0000078125},"int5":{"nats":1e-4,"nats_error":1e-6,"bpb":0.000078125}}}],
    "layers":[],"all":{"int6":{"nats":1e-5,"bpb":7e-6},"int5":{"nats":1e-4,"bpb":7e-5}}},
  "quant":{"column_gain":0.39,"all":[{"step":0.5,"bits":3.1,"error":0.01,"bound":2.4},{"step":1,"bits":2.2,"error":0.04,"bound":1.5}],
    "tensors":[{"name":"bank.down[3]","rows":4,"cols":4,"column_gain":0.596,"points":[]}]}})";

// The DOM of a page after its script has run; what the browser logs goes to `log`.
std::string dom_of(const std::string& address, const fs::path& profile, const std::string& log,
                   int virtual_milliseconds = 2000) {
  return output_of("timeout 100 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --user-data-dir=" +
                   profile.string() + " --window-size=390,900 --virtual-time-budget=" + std::to_string(virtual_milliseconds) +
                   " --dump-dom " + address + " 2>" + log);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has_browser() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

TEST_F(Report, DrawsItsDataInABrowser) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  write("pack.json", R"({"artifact_bytes":600,"ledger":[{"name":"bank.up","bytes":400},{"name":"header","bytes":200}],
    "tensors":[{"name":"bank.up[0]","bits":6,"loss":0.125}]})");
  write("score.json", R"([{"mode":"plain","val_loss":6.75,"val_bpb":3.5,"tokens":10,"seconds":1,"legal":true},
    {"mode":"slot-published","val_loss":6,"val_bpb":3.1,"tokens":10,"seconds":1,"legal":false}])");
  write("analysis.json", kAnalysis);
  write("machine.json", R"({"cpu":"a CPU","peak_gflops":100,"cuda":false})");
  const std::vector<fs::path> folders{folder_};
  write("report.html", report_page(report_data(folders, false)));
  const std::string log = (folder_ / "browser.log").string();
  const std::string dom = dom_of("file://" + (folder_ / "report.html").string(), folder_ / "profile", log);
  EXPECT_TRUE(std::regex_search(dom, std::regex("data-name=\"loss\" data-last=\"6\\.80[01][0-9]*\" data-count=\"400\"")));
  for (const char* part :
       {"data-total=\"600\"", "data-bytes=\"400\" data-name=\"bank.up\"", "data-value=\"0.125\" data-name=\"bank.up[0]\"",
        "<span class=\"no\">illegal</span>", "data-value=\"3.1\" data-name=\"slot-published\"",
        "data-head=\"0.0\" data-class=\"previous\" data-previous=\"0.625\"",
        "data-head=\"0.1\" data-class=\"induction\" data-previous=\"0.05\" data-induction=\"0.03125\"", "data-error=\"0.0126\"",
        "data-accuracy=\"0.25\" data-count=\"40\"", "data-value=\"0.726\" data-name=\"Q\"",
        "data-name=\"nats per token\" data-last=\"4.25\" data-count=\"2\"",
        "data-name=\"bank.qo[0]\" data-bits=\"5\" data-bpb=\"0.000078125\"", "a CPU"})
    EXPECT_NE(dom.find(part), std::string::npos) << part;
  EXPECT_TRUE(std::regex_search(dom, std::regex("3\\.5</td>")));
  EXPECT_TRUE(std::regex_search(dom, std::regex("id=\"light\"")));
  EXPECT_EQ(text_of(log).find("CONSOLE"), std::string::npos) << text_of(log);
}

TEST_F(Report, ComparesSeveralRunsInABrowser) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const fs::path other = folder_ / "other";
  fs::create_directories(other);
  for (const char* name : {"recipe.toml", "metrics.jsonl", "timing.jsonl"}) fs::copy_file(folder_ / name, other / name);
  std::ofstream(other / "score.json")
      << R"({"mode":"sliding","val_loss":5,"val_bpb":2.625,"tokens":10,"seconds":1,"legal":true})";
  write("score.json", R"({"mode":"sliding","val_loss":6,"val_bpb":2.875,"tokens":10,"seconds":1,"legal":true})");
  const std::vector<fs::path> folders{folder_, other};
  write("report.html", report_page(report_data(folders, false)));
  const std::string log = (folder_ / "browser.log").string();
  const std::string dom = dom_of("file://" + (folder_ / "report.html").string(), folder_ / "profile", log);
  EXPECT_NE(dom.find("Side by side"), std::string::npos);
  EXPECT_NE(dom.find("data-value=\"2.625\" data-name=\"other\""), std::string::npos);
  EXPECT_NE(dom.find("data-name=\"other loss\""), std::string::npos);
  EXPECT_EQ(text_of(log).find("CONSOLE"), std::string::npos) << text_of(log);
}

// A run that goes on while the page is open: every answer has one more step, and the page follows.
TEST_F(Report, LivePageFollowsTheRun) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::vector<fs::path> folders{folder_};
  std::atomic<bool> stop = false;
  std::promise<uint16_t> ready;
  int step = kSteps;
  write("metrics.jsonl", "");
  const auto data = [&] {
    std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << R"({"step":)" << ++step << R"(,"loss":)" << step << "}\n";
    return report_data(folders, true);
  };
  const LivePages pages{.page = [&] { return report_page(data()); }, .data = [&] { return data().dump(); }};
  std::thread server([&] {
    serve_report(
        0, pages, [&](uint16_t port) { ready.set_value(port); }, [&] { return stop.load(); });
  });
  const std::string address = "http://127.0.0.1:" + std::to_string(ready.get_future().get()) + "/";
  const std::string log = (folder_ / "browser.log").string();
  const std::string dom = dom_of(address, folder_ / "profile", log, 9000);
  stop = true;
  server.join();
  std::smatch updates, last;
  ASSERT_TRUE(std::regex_search(dom, updates, std::regex("data-updates=\"([0-9]+)\""))) << text_of(log);
  ASSERT_TRUE(std::regex_search(dom, last, std::regex("data-name=\"loss\" data-last=\"([0-9]+)\"")));
  EXPECT_GE(std::stoi(updates[1]), 2);
  EXPECT_EQ(std::stoi(last[1]), kSteps + 1 + std::stoi(updates[1]));
  EXPECT_EQ(text_of(log).find("CONSOLE"), std::string::npos) << text_of(log);
}

TEST_F(Report, TellsTheSpeedOfLightAndThePhases) {
  write("machine.json", R"({"cpu":"a CPU","peak_gflops":200,"cuda":false})");
  const double alone = read_run(folder_)["summary"]["speed_of_light"].get<double>();
  write("machine.json", R"({"cpu":"a CPU","peak_gflops":100,"cuda":false})");
  EXPECT_NEAR(read_run(folder_)["summary"]["speed_of_light"].get<double>(), 2 * alone, 1e-12);
  for (const char* cuda :
       {"true", R"({"device":"NVIDIA H200","arch":"9.0","path":"sm_90a"})"}) {  // not the peak of what trained
    write("machine.json", std::string(R"({"cpu":"a CPU","peak_gflops":100,"cuda":)") + cuda + "}");
    EXPECT_FALSE(read_run(folder_)["summary"].contains("speed_of_light")) << cuda;
  }
  write(
      "machine.json",
      R"({"cpu":"a CPU","peak_gflops":100,"cuda":{"device":"NVIDIA T4","arch":"7.5","path":null}})");  // it trained on the CPU
  EXPECT_TRUE(read_run(folder_)["summary"].contains("speed_of_light"));
  write("machine.json", R"({"cpu":"a CPU","peak_gflops":100,"cuda":true})");
  write(
      "run.json",
      R"({"phases":{"train":{"seconds":301,"result":{"speed_of_light":0.5,"tokens_per_second":1000}},"pack":{"seconds":7}}})");
  const nlohmann::ordered_json run = read_run(folder_);
  EXPECT_DOUBLE_EQ(run["summary"]["speed_of_light"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(run["light_per_token"].get<double>(), 0.0005);
  EXPECT_DOUBLE_EQ(run["phases"]["pack"].get<double>(), 7);
}

TEST_F(Report, LadderFillsInWhatTheRunHasNoScoreOf) {
  write("score.json", R"({"mode":"sliding","val_bpb":2.5})");
  write("ladder.json",
        R"({"ladder":[{"mode":"sliding","val_bpb":9},{"mode":"plain","val_bpb":2.625},{"mode":"ttt","refused_seconds":5}]})");
  const nlohmann::ordered_json scores = read_run(folder_)["scores"];
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0]["mode"], "plain");
  EXPECT_DOUBLE_EQ(scores[1]["val_bpb"].get<double>(), 2.5);
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
