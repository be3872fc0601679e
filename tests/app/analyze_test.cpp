// `fairway analyze` on a trained run: sections, tables, the file that the report reads, and refusals.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

using testing::HasSubstr;

class Analyze : public testing::Test {
 protected:
  void SetUp() override {
    make_data(data_);
    run_json(train_smoke(data_, run_, {"--steps", "3"}));
  }
  ScratchFolder scratch_;
  const std::string data_ = scratch_ / "data", run_ = scratch_ / "run";
};

TEST_F(Analyze, WritesEverySectionAndKeepsEarlierOnes) {
  const auto spectra = run_json({"analyze", "svd", run_});
  EXPECT_TRUE(spectra["svd"]["roles"].size() == 6 && spectra["svd"]["roles"][0]["utilization"] > 0.1) << spectra;
  EXPECT_FALSE(spectra.contains("heads"));
  const auto rest = run_json(
      {"analyze", run_, "--what", "lens,heads,calibration,sensitivity", "--data", data_, "--tokens", "512", "--bits", "6,4"});
  EXPECT_GT(rest["lens"]["layers"].size(), 1U);
  EXPECT_EQ(rest["calibration"]["bins"].size(), 20U);
  EXPECT_NEAR(rest["lens"]["layers"].back()["loss"].get<double>(), rest["sensitivity"]["loss"].get<double>(), 1e-6);
  EXPECT_TRUE(rest["sensitivity"]["all"].contains("int4"));
  const auto rates = run_json({"analyze", "quant", run_})["quant"];
  EXPECT_GE(rates["column_gain"].get<double>(), 0);
  EXPECT_TRUE(rates["tensors"].size() > 6 && rates["all"].front()["bits"] > rates["all"].back()["bits"]) << rates;
  const auto kept = nlohmann::json::parse(contents(Path(run_) / "analysis.json"));
  for (const char* section : {"svd", "heads", "calibration", "lens", "sensitivity", "quant"})
    EXPECT_TRUE(kept.contains(section)) << section;
  const Outcome page = run_program({"report", run_});
  EXPECT_EQ(page.status, 0) << page.text();
  EXPECT_THAT(contents(Path(run_) / "report.html"), HasSubstr("class_classical"));
}

TEST_F(Analyze, PrintsTables) {
  const Outcome out = run_program({"analyze", "heads", run_, "--data", data_, "--tokens", "256", "--quiet"});
  EXPECT_EQ(out.err, "");
  EXPECT_THAT(out.out, HasSubstr("classical induction:"));
  const Outcome table = run_program({"analyze", "lens,heads", run_, "--data", data_, "--tokens", "256"});
  EXPECT_EQ(table.status, 0) << table.text();
  EXPECT_THAT(table.out, HasSubstr("classical induction:"));
  EXPECT_THAT(table.out, HasSubstr("bits per byte"));
}

TEST_F(Analyze, RefusesWhatItCannotDo) {
  const auto refused = [](const Args& args, const std::string& sentence) {
    const Outcome out = run_program(args);
    EXPECT_EQ(out.status, 2) << out.text();
    EXPECT_THAT(out.err, HasSubstr(sentence));
  };
  refused({"analyze", "head", run_}, "the nearest is heads");
  std::filesystem::create_directories(scratch_ / "alone");
  const std::string alone = scratch_ / "alone" / "w.safetensors";
  put_file(alone, contents(run_ + "/averaged.safetensors"));
  refused({"analyze", "heads", alone, "--recipe", "smoke"}, "--data");
  refused({"analyze", "heads", run_ + "/absent"}, "absent");
  refused({"analyze", "all", run_, "--data", run_}, "expected a folder of shards");
  refused({"analyze", "sensitivity", run_, "--bits", "5,6"}, "the finer one first");
  refused({"analyze", "svd", run_, "--what", "lens"}, "give only one of them");
  const std::string artifact = scratch_ / "a.fwy";
  run_json({"pack", run_, "--calibration", "self", "--budget", "700KB", "--data", data_, "--out", artifact});
  refused({"analyze", "quant", artifact}, "rounded already");
  refused({"analyze", "heads", run_, "--data", data_, "--context", "1000000"}, "fewer than one window");
}

}  // namespace
