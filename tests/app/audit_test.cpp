// Scores in every mode, the audit and its receipt, as a user runs them.
#include <gtest/gtest.h>

#include "app/world.h"
#include "data/shard.h"

namespace {

class AuditProgram : public testing::Test {
 protected:
  void SetUp() override {
    make_data(data_);
    ASSERT_EQ(run_program(train_smoke(data_, run_, {"--steps", "3", "--quiet"})).status, 0);
  }
  Args score(const Args& more) const {
    Args args{"score", run_, "--data", data_};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run";
};

TEST_F(AuditProgram, EveryModeScoresTheSameTargets) {
  const int64_t tokens = run_json(score({"--mode", "plain", "--tokens", "512"}))["tokens"];
  for (const char* mode : {"sliding", "slot", "ttt", "lora-ttt", "sliding+tilt", "slot+tilt", "ttt+tilt", "lora-ttt+tilt",
                           "ttt+slot", "lora-ttt+slot+tilt", "slot-published", "ngram-published"}) {
    const nlohmann::json result = run_json(score({"--mode", mode, "--tokens", "512"}));
    EXPECT_EQ(result["tokens"], tokens) << mode;
    EXPECT_EQ(result["mode"], mode);
    EXPECT_EQ(result["legal"], std::string(mode).find("published") == std::string::npos) << mode;
  }
}

TEST_F(AuditProgram, BatchAndThreadsDoNotChangeAScore) {
  const nlohmann::json one = run_json(score({"--mode", "sliding", "--threads", "1", "--set", "score.windows=1"}));
  const nlohmann::json more = run_json(score({"--mode", "sliding", "--threads", "3", "--set", "score.windows=7"}));
  EXPECT_EQ(one["val_loss"], more["val_loss"]);
}

TEST_F(AuditProgram, WhatCannotFitTheTimeIsRefusedBeforehand) {
  const Outcome refused = run_program(score({"--mode", "sliding", "--seconds", "0.00001"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("--seconds"), std::string::npos) << refused.err;
  EXPECT_EQ(run_program(score({"--mode", "plain", "--seconds", "600"})).status, 0);
  EXPECT_EQ(run_program(score({"--set", "model.dim=4"})).status, 2);
}

TEST_F(AuditProgram, TheReceiptIsWrittenAuditedAndChecked) {
  const std::string out = scratch_ / "scored", receipt = out + "/receipt.json";
  ASSERT_EQ(run_program(score({"--mode", "sliding", "--out", out})).status, 0);
  EXPECT_EQ(run_program({"audit", "--verify", receipt}).status, 1) << "a receipt without an audit";
  EXPECT_EQ(run_program({"audit", run_, "--data", data_, "--mode", "plain", "--receipt", receipt}).status, 2);
  EXPECT_EQ(run_program({"audit", run_, "--data", data_, "--mode", "sliding", "--stride", "8", "--receipt", receipt}).status,
            2);
  const nlohmann::json audit =
      run_json({"audit", run_, "--data", data_, "--mode", "sliding", "--tokens", "320", "--probes", "2", "--receipt", receipt});
  EXPECT_EQ(audit["legal"], true) << audit.dump(1);
  EXPECT_EQ(audit["tests"].size(), 12U);
  EXPECT_EQ(nlohmann::json::parse(contents(receipt))["audit"]["tokens"], 320) << "the slice, not what was scored";
  EXPECT_EQ(run_json({"audit", "--verify", receipt, "--again"})["held"], true);
  std::string text = contents(receipt);
  const size_t at = text.find("\"val_bpb\": ") + 11;
  text[at] = text[at] == '1' ? '2' : '1';
  put_file(out + "/forged.json", text);
  EXPECT_EQ(run_program({"audit", "--verify", out + "/forged.json"}).status, 2);
  const std::string shard = data_ + "/fineweb_val_000000.bin", bytes = contents(shard);
  fairway::data::write_shard(shard, random_tokens(1500, kSmokeVocab, 4));
  EXPECT_EQ(run_program({"audit", "--verify", receipt}).status, 1);
  put_file(shard, bytes);
  EXPECT_EQ(run_program({"audit", "--verify", receipt}).status, 0);
}

TEST_F(AuditProgram, BytesMayComeFromAFileBesideTheShards) {
  const nlohmann::json before = run_json(score({"--mode", "plain", "--all-targets"}));
  const auto tokens = static_cast<size_t>(before["tokens"]) + 1;
  const std::string sidecar = data_ + "/fineweb_val_bytes_000000.bin";
  fairway::data::write_shard(sidecar, std::vector<uint16_t>(tokens, 2));
  const nlohmann::json after = run_json(score({"--mode", "plain", "--all-targets"}));
  EXPECT_EQ(after["bytes"], 2 * (tokens - 1));
  EXPECT_EQ(after["val_loss"], before["val_loss"]);
  fairway::data::write_shard(sidecar, std::vector<uint16_t>(tokens - 1, 2));
  EXPECT_EQ(run_program(score({"--mode", "plain"})).status, 2);
}

TEST_F(AuditProgram, AnyLengthContextAndStrideScoreEveryTarget) {
  for (const Args& lengths :
       {Args{"--tokens", "1", "--context", "1", "--stride", "1"}, Args{"--tokens", "70", "--context", "33", "--stride", "7"},
        Args{"--tokens", "70", "--context", "300", "--stride", "300"}}) {
    Args args = score({"--mode", "sliding", "--all-targets"});
    args.insert(args.end(), lengths.begin(), lengths.end());
    EXPECT_EQ(run_json(args)["tokens"], std::stoi(lengths[1])) << lengths[3];
  }
}

TEST_F(AuditProgram, TheLadderTellsEveryRungAndItsCost) {
  const nlohmann::json rungs = run_json(score({"--ladder", "--tokens", "512"}))["ladder"];
  ASSERT_EQ(rungs.size(), 14U);  // five modes alone and with a tilt, two of them also with an offset
  EXPECT_EQ(rungs[0]["mode"], "plain");
  EXPECT_EQ(rungs[1]["mode"], "plain+tilt");
  EXPECT_EQ(rungs[2]["mode"], "sliding");
  for (const nlohmann::json& rung : rungs) {
    EXPECT_EQ(rung["tokens"], rungs[0]["tokens"]);
    EXPECT_EQ(rung["packed"], false);
    EXPECT_GT(rung["seconds"], 0);
  }
  for (const nlohmann::json& rung : run_json(score({"--ladder", "--seconds", "0.00001"}))["ladder"])
    EXPECT_TRUE(rung.contains("refused_seconds")) << rung.dump();
}

TEST_F(AuditProgram, ABrokenModeFailsTheAudit) {
  const Outcome audit =
      run_program({"audit", run_, "--data", data_, "--mode", "slot-published", "--tokens", "320", "--no-controls"});
  EXPECT_EQ(audit.status, 1);
  EXPECT_NE(audit.out.find("legal: false"), std::string::npos) << audit.text();
}

}  // namespace
