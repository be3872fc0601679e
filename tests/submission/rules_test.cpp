// Every broken rule is refused with a sentence of its own; runs that keep the rules are not.
#include <gmock/gmock.h>

#include "base/error.h"
#include "submission/made_runs.h"

namespace fairway::submission {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

using Rules = MadeRuns;

TEST_F(Rules, HoldForGoodRuns) { EXPECT_THAT(broken(), ElementsAre()); }

TEST_F(Rules, ThreeRuns) {
  const std::vector<RunFacts> all = facts();
  EXPECT_THAT(broken_rules(std::span(all).first(2), {kCode, program_}), ElementsAre(HasSubstr("2 runs were given")));
  EXPECT_THAT(broken_rules(std::span(all).first(0), {kCode, program_}), ElementsAre(HasSubstr("0 runs were given")));
}

TEST_F(Rules, DifferentSeeds) {
  std::vector<RunFacts> all = facts();
  all[2] = all[0];
  EXPECT_THAT(broken_rules(all, {kCode, program_}), ElementsAre(HasSubstr("have the same seed 1")));
}

TEST_F(Rules, OneRecipe) {
  std::vector<RunFacts> all = facts();
  all[1].recipe.optim.clip = 0.5;
  EXPECT_THAT(broken_rules(all, {kCode, program_}), Contains(HasSubstr("different recipes: [optim] clip")));
}

TEST_F(Rules, SixteenMillionBytesWithTheCode) {
  const uint64_t artifact = facts()[0].artifact_bytes;
  std::vector<RunFacts> all = facts();
  for (RunFacts& run : all) run.pack["code_bytes"] = kMostBytes - artifact;
  EXPECT_THAT(broken_rules(all, {kMostBytes - artifact, program_}), ElementsAre());
  for (RunFacts& run : all) run.pack["code_bytes"] = kMostBytes - artifact + 1;
  EXPECT_THAT(broken_rules(all, {kMostBytes - artifact + 1, program_}),
              testing::AllOf(testing::SizeIs(3), Contains(HasSubstr("are 16000001, over the limit of 16000000"))));
}

TEST_F(Rules, TenMinutesOfTraining) {
  put(run(2) / "timing.jsonl", "{\"step\":40,\"train_seconds\":600.0}\n");
  EXPECT_THAT(broken(), ElementsAre());
  put(run(2) / "timing.jsonl", "{\"step\":40,\"train_seconds\":600.001}\n");
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("trained for 600.001 s, over the limit of 600 s")));
}

TEST_F(Rules, CalibrationOnTrainingDataIsTraining) {
  put(run(2) / "timing.jsonl", "{\"step\":40,\"train_seconds\":595}\n");
  const auto calibrated = [&](double seconds, const char* on) {
    change(run(2) / "pack.json", [&](ordered_json& pack) {
      pack["seconds"]["calibrate"] = seconds;
      pack["calibration"] = on;
    });
    return broken();
  };
  EXPECT_THAT(calibrated(6, "self"), ElementsAre());
  EXPECT_THAT(calibrated(5, "train"), ElementsAre());
  EXPECT_THAT(calibrated(6, "train"), ElementsAre(HasSubstr("trained for 601.000 s with its calibration")));
  change(run(2) / "pack.json", [](ordered_json& pack) { pack.erase("calibration"); });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("601.000 s"))) << "what does not tell is counted";
}

TEST_F(Rules, TenMinutesOfScoring) {
  change(run(1) / "score.json", [](ordered_json& score) { score["seconds"] = 600.5; });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("scored for 600.5 s, over the limit of 600 s")));
}

TEST_F(Rules, AReceiptWithAnAudit) {
  change(run(1) / "receipt.json", [](ordered_json& receipt) { receipt.erase("audit"); });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("has no audit")));
}

TEST_F(Rules, AnAuditThatHeld) {
  change(run(1) / "receipt.json", [](ordered_json& receipt) {
    receipt["audit"]["legal"] = false;
    receipt["audit"]["tests"][1]["held"] = false;
  });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("the audit's test T2 failed"), HasSubstr("did not find the score legal")));
}

TEST_F(Rules, AnUnchangedReceipt) {
  ordered_json receipt = get_json(run(1) / "receipt.json");
  receipt["score"]["val_bpb"] = 0.5;
  put(run(1) / "receipt.json", receipt.dump());
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("was changed after it was written")));
}

TEST_F(Rules, AReceiptOfTheseBytes) {
  put(run(3) / "model.fwy", "artifact of seed 4");
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("is stale: model.fwy is not the artifact that was scored")));
}

TEST_F(Rules, AReceiptOfThisScore) {
  change(run(3) / "score.json", [](ordered_json& score) { score["val_bpb"] = 0.5; });
  EXPECT_THAT(broken(), ElementsAre(testing::AllOf(HasSubstr("is stale: its val_bpb is"), HasSubstr("score.json says 0.5"))));
}

TEST_F(Rules, AScoreThatTheRecordsGive) {
  const auto better = [](ordered_json& score) { score["val_bpb"] = 0.9; };
  change(run(1) / "score.json", better);
  change(run(1) / "receipt.json", [&](ordered_json& receipt) { better(receipt["score"]); });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("its val_bpb is 0.9, but its records give")));
  // Its own sums rewritten too: then they are not those of the records.
  change(run(2) / "receipt.json", [](ordered_json& receipt) { receipt["records"]["nats"][0] = 1.0; });
  EXPECT_THAT(broken(), Contains(HasSubstr("its sums are not those of")));
  put(run(3) / "score.records", "FWSR");
  EXPECT_THROW(facts(), InputError);
}

TEST_F(Rules, AReceiptOfThisProgram) {
  EXPECT_THAT(broken_rules(facts(), {kCode, std::string(64, 'b')}),
              testing::AllOf(testing::SizeIs(3), Contains(HasSubstr("was made by another program"))));
}

TEST_F(Rules, TheWholeValidationData) {
  change(run(3) / "receipt.json", [](ordered_json& receipt) { receipt["settings"]["tokens"] = 512; });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("scored only the first 512 tokens")));
}

TEST_F(Rules, TheSameValidationData) {
  change(run(2) / "receipt.json", [](ordered_json& receipt) { receipt["data"]["shards"][0]["sha256"] = "other"; });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("were not scored alike: validation shards SHA-256")));
}

TEST_F(Rules, ALegalMode) {
  for (const int64_t seed : {1, 2, 3}) {
    const auto illegal = [](ordered_json& score) {
      score["mode"] = "slot-published";
      score["legal"] = false;
    };
    change(run(seed) / "score.json", illegal);
    change(run(seed) / "receipt.json", [&](ordered_json& receipt) {
      illegal(receipt["score"]), illegal(receipt["settings"]);
      receipt["legal"] = false;
    });
  }
  EXPECT_THAT(broken(), testing::AllOf(testing::SizeIs(3), Contains(HasSubstr("mode slot-published breaks the rules"))));
}

TEST_F(Rules, AModeThatShippedSourcesHave) {
  for (const int64_t seed : {1, 2, 3}) {
    const auto slot = [](ordered_json& score) { score["mode"] = "slot"; };
    change(run(seed) / "score.json", slot);
    change(run(seed) / "receipt.json", [&](ordered_json& receipt) { slot(receipt["score"]), slot(receipt["settings"]); });
  }
  EXPECT_THAT(broken(), testing::AllOf(testing::SizeIs(3), Contains(HasSubstr("mode slot is not in the sources"))));
}

TEST_F(Rules, OneModeForAll) {
  const auto plain = [](ordered_json& score) { score["mode"] = "plain"; };
  change(run(2) / "score.json", plain);
  change(run(2) / "receipt.json", [&](ordered_json& receipt) { plain(receipt["score"]), plain(receipt["settings"]); });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("were not scored alike: mode plain and sliding")));
}

TEST_F(Rules, LogsOfTheseRuns) {
  put(run(1) / "train.log", get(run(2) / "train.log"));
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("does not give the recipe's seed"), HasSubstr("the hash of recipe.toml")));
}

TEST_F(Rules, AnArtifactOfTheLoggedSize) {
  change(run(2) / "pack.json", [](ordered_json& pack) { pack["artifact_bytes"] = 17; });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("model.fwy has 18 bytes, but pack.json and the log say 17")));
}

TEST_F(Rules, TheCodeThatWasCounted) {
  change(run(2) / "pack.json", [](ordered_json& pack) { pack["code_bytes"] = 10; });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("packed when the code had 10 bytes, now it has 11")));
}

TEST_F(Rules, TextsThatAreApart) {
  change(run(1) / "receipt.json", [](ordered_json& receipt) { receipt["data"]["shared_documents"] = 3; });
  change(run(2) / "receipt.json", [](ordered_json& receipt) { receipt["data"]["shared_documents"] = nullptr; });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("must be known and 0; it is 3"), HasSubstr("it is not known")));
}

TEST_F(Rules, OneLaunchForAll) {
  change(run(2) / "machine.json", [](ordered_json& machine) { machine["launch"]["ranks"] = 4; });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("was trained by 4 ranks on cuda")));
  change(run(2) / "machine.json", [](ordered_json& machine) { machine["launch"] = {{"backend", "cpu"}, {"ranks", 8}}; });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("was trained by 8 ranks on cpu")));
  fs::remove(run(2) / "machine.json");
  EXPECT_THAT(broken(), Contains(HasSubstr("does not tell the backend and the ranks")));
}

TEST_F(Rules, FieldsOfOtherTypesAreASentence) {
  const std::pair<const char*, const char*> odd[] = {
      {"machine.json", R"({"launch": {"backend": 3, "ranks": 8}})"},
      {"machine.json", R"({"launch": {"backend": "cpu", "ranks": "8"}})"},
      {"pack.json", R"({"artifact_bytes": 18, "method": []})"},
      {"pack.json", R"({"artifact_bytes": 18, "seconds": {}, "calibration": {}})"},
      {"timing.jsonl", R"({"step": 1e300, "train_seconds": 4})"}};
  for (const auto& [file, text] : odd) {
    const std::string kept = get(run(1) / file);
    put(run(1) / file, text);
    try {
      read_run_facts(run(1));
      ADD_FAILURE() << file << ": " << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file));
    }
    put(run(1) / file, kept);
  }
}

TEST_F(Rules, EveryFileMustBeThere) {
  for (const char* file : {"recipe.toml", "timing.jsonl", "metrics.jsonl", "train.log", "model.fwy", "pack.json", "score.json",
                           "receipt.json", "score.records"}) {
    const std::string kept = get(run(1) / file);
    fs::remove(run(1) / file);
    try {
      read_run_facts(run(1));
      ADD_FAILURE() << file;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file));
    }
    put(run(1) / file, kept);
  }
}

}  // namespace
}  // namespace fairway::submission
