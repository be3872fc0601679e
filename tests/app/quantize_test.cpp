// `fairway quantize` with each source of Hessians, and training with online accumulation.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;

class Quantize : public testing::Test {
 protected:
  void SetUp() override { make_data(data_); }
  void expect_refused(const Args& args, const std::string& says) {
    const auto result = run_program(args);
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr(says));
  }
  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run";
};

TEST_F(Quantize, TellsEveryTensorByEachCalibration) {
  run_json(train_smoke(data_, run_, {"--steps", "50", "--set", "quant.calibration=\"online\""}));
  for (const std::string source : {"self", "train", "online"}) {
    const json result = run_json(
        {"quantize", run_, "--calibration", source, "--data", data_, "--tokens", "2048", "--set", "quant.rule=\"gptq\""});
    EXPECT_EQ(result["calibration"], source);
    EXPECT_TRUE(result.contains("seconds"));
    int quantized = 0;
    for (const json& tensor : result["tensors"]) {
      for (const char* field : {"name", "bits", "scale_rule", "loss"}) EXPECT_TRUE(tensor.contains(field)) << tensor;
      if (tensor["gptq"] != true) continue;
      ++quantized;
      EXPECT_GT(tensor["loss"].get<double>(), 0) << tensor;
    }
    EXPECT_GT(quantized, 4) << source;
  }
  expect_refused({"quantize", run_, "--calibration", "own"}, "--calibration");
  expect_refused({"quantize", run_, "--calibration", "train", "--data", scratch_ / "nowhere"}, "nowhere");
}

TEST_F(Quantize, OnlineHessiansLeaveTrainingAsItIs) {
  const std::string plain = scratch_ / "plain";
  run_json(train_smoke(data_, run_, {"--steps", "50", "--set", "quant.calibration=\"online\""}));
  run_json(train_smoke(data_, plain, {"--steps", "50"}));
  EXPECT_EQ(contents(run_ + "/metrics.jsonl"), contents(plain + "/metrics.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(run_ + "/hessians.safetensors"));
  expect_refused({"quantize", plain, "--calibration", "online"}, "hessians.safetensors");
}

TEST_F(Quantize, OnlineGoesOnAfterAResume) {
  const std::string straight = scratch_ / "straight";
  const Args online{"--steps", "60", "--set", "quant.calibration=\"online\"", "--set", "train.checkpoint_every=20"};
  run_json(train_smoke(data_, straight, online));
  run_json(train_smoke(data_, run_, online));
  std::filesystem::remove(run_ + "/checkpoint/latest.safetensors");  // as if it had died after step 40
  Args again = online;
  again.push_back("--resume");
  run_json(train_smoke(data_, run_, again));
  expect_same(bytes_of_run(run_), bytes_of_run(straight), "online, resumed");
  const json loss = run_json({"quantize", run_, "--calibration", "online"})["tensors"];
  EXPECT_EQ(loss, run_json({"quantize", straight, "--calibration", "online"})["tensors"]);
}

}  // namespace
