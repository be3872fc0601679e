// A run folder that import made is a run to every command: what PyTorch's names carry out and back in is the same model.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

TEST(Import, WhatWasExportedUnderPublishedNamesIsARunAgain) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", run = scratch / "run", file = scratch / "final_model.pt", back = scratch / "back";
  make_data(data);
  ASSERT_EQ(run_program(train_smoke(data, run, {"--steps", "3"})).status, 0);
  run_json({"export", run, "--names", "published", "--out", file});
  const json imported = run_json({"import", file, "--out", back});
  EXPECT_EQ(imported["recipe"], "smoke");
  EXPECT_THAT(imported["why"].get<std::string>(), HasSubstr("guessed"));
  for (const char* list : {"missing", "unexpected", "transposed", "ignored", "filled", "rounded", "not_finite"})
    EXPECT_EQ(imported[list], json::array()) << list;
  EXPECT_GT(imported["tensors"].get<int>(), 30);
  EXPECT_EQ(json::parse(contents(Path(back) / "import.json"))["sha256"], imported["sha256"]);
  const json before = run_json({"score", run, "--data", data, "--mode", "plain"}),
             after = run_json({"score", back, "--data", data, "--mode", "plain"});
  EXPECT_EQ(before["val_loss"], after["val_loss"]);

  run_json({"quantize", back, "--tokens", "256"});
  const json packed = run_json({"pack", back, "--tokens", "256", "--out", back + "/model.fwy"});
  EXPECT_GT(packed["artifact_bytes"].get<int64_t>(), 1000);
  EXPECT_TRUE(run_json({"score", back + "/model.fwy", "--data", data, "--mode", "plain"})["legal"].get<bool>());
  EXPECT_TRUE(run_json({"audit", back, "--data", data, "--mode", "plain", "--probes", "2"})["legal"].get<bool>());
  run_json({"analyze", "svd", back});
  EXPECT_TRUE(run_json({"generate", back, "--tokenizer", data + "/tokenizer.model", "--tokens", "4", "--prompt", "the "})
                  .contains("text"));
  run_json({"report", back});
}

TEST(Import, RoundsTablesOnlyWhenAsked) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", run = scratch / "run", file = scratch / "w.safetensors", back = scratch / "back",
                    rounded = scratch / "rounded";
  make_data(data);
  ASSERT_EQ(run_program(train_smoke(data, run, {"--steps", "3"})).status, 0);
  run_json({"export", run, "--names", "published", "--out", file});
  run_json({"import", file, "--out", back});
  const json told = run_json({"import", file, "--tables-bf16", "--out", rounded});
  EXPECT_THAT(told["rounded"].get<std::vector<std::string>>(), testing::Contains("embed.token"));
  EXPECT_NE(contents(Path(back) / "averaged.safetensors"), contents(Path(rounded) / "averaged.safetensors"));
  EXPECT_NE(run_json({"score", back, "--data", data, "--mode", "plain"})["val_loss"],
            run_json({"score", rounded, "--data", data, "--mode", "plain"})["val_loss"]);
}

}  // namespace
