// The page's data are the run's numbers, and hostile text stays text.
#include "base/error.h"
#include "report/page.h"
#include "report/report_fixture.h"
#include "report/run_data.h"
#include "report/tensorboard.h"

namespace fairway {
namespace {

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
