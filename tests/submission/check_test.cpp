// The checker finds nothing in a good folder and each broken rule in a changed one.
#include "submission/check.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "submission/made_runs.h"

namespace fairway::submission {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Check : public MadeRuns {
 protected:
  Check() : out_(write_good()) {}
  // Replaces the first occurrence, which must be there.
  void replace(const std::string& file, const std::string& what, const std::string& with) const {
    std::string text = get(out_ / file);
    const size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << file << ": " << what;
    put(out_ / file, text.replace(at, what.size(), with));
  }
  void edit(const std::string& file, const std::function<void(ordered_json&)>& change_it) const {
    change(out_ / file, change_it);
  }
  std::vector<std::string> problems() const { return check_folder(out_); }
  fs::path out_;
};

TEST_F(Check, AGoodFolderHolds) { EXPECT_THAT(problems(), IsEmpty()); }

TEST_F(Check, EveryFileIsNeeded) {
  for (const char* file : {"README.md", "submission.json", "recipe.toml", "source.7z", "requirements.txt", "run.sh",
                           "train_seed2.log", "receipt_seed3.json"}) {
    const std::string kept = get(out_ / file);
    fs::remove(out_ / file);
    EXPECT_THAT(problems(), Contains(HasSubstr(file))) << file;
    put(out_ / file, kept);
  }
  EXPECT_THAT(check_folder(out_ / "absent"), ElementsAre(HasSubstr("not a folder")));
}

TEST_F(Check, FieldsOfTheSubmission) {
  for (const char* key : {"author", "github_id", "name", "blurb", "date", "val_bpb", "val_loss", "bytes_total", "bytes_code",
                          "seeds", "seed_results", "compliance", "track"}) {
    const ordered_json kept = get_json(out_ / "submission.json");
    edit("submission.json", [&](ordered_json& s) { s.erase(key); });
    EXPECT_FALSE(problems().empty()) << key;
    edit("submission.json", [&](ordered_json& s) { s[key] = ordered_json::array({ordered_json::object()}); });
    EXPECT_FALSE(problems().empty()) << key;
    put(out_ / "submission.json", kept.dump());
  }
  edit("submission.json", [](ordered_json& s) { s["date"] = "27.4.2026"; });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("is not YYYY-MM-DD")));
}

TEST_F(Check, TextThatIsNoJson) {
  put(out_ / "submission.json", "{");
  EXPECT_THAT(problems(), Contains(HasSubstr("submission.json: is not a JSON object")));
}

TEST_F(Check, ThreeDifferentSeeds) {
  edit("submission.json", [](ordered_json& s) { s["seeds"] = {1, 2, 2}; });
  EXPECT_THAT(problems(),
              testing::AllOf(Contains(HasSubstr("seed 2 appears twice")), Contains(HasSubstr("2 different seeds"))));
}

TEST_F(Check, MeansAndDeviations) {
  edit("submission.json", [](ordered_json& s) { s["val_bpb"] = s["val_bpb"].get<double>() - 1e-6; });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("val_bpb is not the mean over seeds, " + bpb_text(2))));
  edit("submission.json", [](ordered_json& s) { s["val_bpb"] = measured(2).bits_per_byte(), s["val_bpb_std"] = 0.0; });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("val_bpb_std is not the sample deviation")));
}

TEST_F(Check, TheByteLimit) {
  edit("submission.json", [](ordered_json& s) {
    s["bytes_code"] = 15'999'990;
    s["bytes_total"] = 16'000'008;
  });
  EXPECT_THAT(problems(), Contains(HasSubstr("artifact and code have 16000008 bytes, over 16000000")));
}

TEST_F(Check, TheTotalIsItsParts) {
  edit("submission.json", [](ordered_json& s) { s["bytes_total"] = 28; });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("bytes_total 28 is not the largest artifact, 18, and the code, 11")));
}

TEST_F(Check, TheCodeIsWhatIsShipped) {
  put(out_ / "source.7z", bundle_ + "!");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("has 12 bytes, submission.json counts 11")));
}

TEST_F(Check, TenMinutesOfTraining) {
  replace("train_seed1.log", "train_time:4000ms", "train_time:600001ms");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("training took 600.001 s, over 600 s")));
  replace("train_seed1.log", "train_time:600001ms", "train_time:soon");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("training took nan s")));
}

TEST_F(Check, TenMinutesOfScoring) {
  replace("train_seed1.log", "total_eval_time:3.500s", "total_eval_time:601.0s");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("scoring took 601.0 s, over 600 s")));
}

TEST_F(Check, LogsTellTheScores) {
  const std::string line = fmt::format("final_int8_zlib_roundtrip_exact val_loss:{:.8f} val_bpb:", measured(2).loss());
  replace("train_seed2.log", line + bpb_text(2), line + "0.50000000");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("its final score is 0.50000000")));
}

TEST_F(Check, LogsTellSizeSeedStepsAndRecipe) {
  replace("train_seed1.log", "Total submission size int6+rans: 29 bytes", "Total submission size int6+rans: 30 bytes");
  replace("train_seed2.log", "\nseed:2\n", "\nseed:3\n");
  replace("train_seed3.log", "step:40/40", "step:41/41");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("its submission size is 30"), HasSubstr("is not of seed 2"),
                                      HasSubstr("ends at step 41, but submission.json says 40")));
  replace("recipe.toml", "clip = 0.3", "clip = 0.4");
  EXPECT_THAT(problems(), Contains(HasSubstr("train_seed1.log: was made with a recipe that is not recipe.toml")));
}

TEST_F(Check, ReceiptsAreSealedAndOfTheseArtifactsAndScores) {
  replace("receipt_seed1.json", "\"legal\": true", "\"legal\": true ,\"more\": 1");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("receipt_seed1.json: was changed after it was written")));
  edit("receipt_seed1.json", [](ordered_json& r) { r["artifact"]["sha256"] = "other"; });
  edit("receipt_seed2.json", [](ordered_json& r) { r["score"]["val_bpb"] = 0.9; });
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("is of a different artifact"), HasSubstr("its val_bpb is 0.9, but its records give")));
}

// Everything that tells the score is rewritten, and the receipt sealed anew; only its sums still tell the truth.
TEST_F(Check, AScoreThatTheRecordsDoNotGive) {
  const double claimed = 0.9;
  for (const int seed : {1, 2, 3}) {
    const std::string name = std::to_string(seed), told = fmt::format("{:.8f}", claimed);
    edit("receipt_seed" + name + ".json", [&](ordered_json& r) { r["score"]["val_bpb"] = claimed; });
    edit("submission.json", [&](ordered_json& s) { s["seed_results"][name]["val_bpb"] = claimed; });
    for (const std::string& file : {"train_seed" + name + ".log", std::string("README.md")}) {
      std::string text = get(out_ / file);
      for (size_t at = text.find(bpb_text(seed)); at != std::string::npos; at = text.find(bpb_text(seed)))
        text.replace(at, told.size(), told);
      put(out_ / file, text);
    }
  }
  edit("submission.json", [&](ordered_json& s) { s["val_bpb"] = claimed, s["val_bpb_std"] = 0.0; });
  const std::vector<std::string> found = problems();
  EXPECT_THAT(found, Contains(HasSubstr("receipt_seed2.json: its val_bpb is 0.9, but its records give")));
  EXPECT_THAT(found, Contains(HasSubstr("submission.json says 0.9")));
  EXPECT_THAT(found, testing::Each(HasSubstr("its records give")));  // nothing else is left to notice it by
}

TEST_F(Check, SumsThatAreMissingOrTooFew) {
  edit("receipt_seed1.json", [](ordered_json& r) { r["records"]["nats"].push_back(1.0); });
  edit("receipt_seed2.json", [](ordered_json& r) { r["records"]["bytes"] = "many"; });
  edit("receipt_seed3.json", [](ordered_json& r) { r.erase("records"); });
  const std::vector<std::string> found = problems();
  for (const char* file : {"receipt_seed1.json", "receipt_seed2.json", "receipt_seed3.json"})
    EXPECT_THAT(found, Contains(testing::AllOf(HasSubstr(file), HasSubstr("records")))) << file;
}

TEST_F(Check, ReceiptsAreLegalAndComplete) {
  edit("receipt_seed1.json", [](ordered_json& r) { r["settings"]["mode"] = "ngram-published"; });
  edit("receipt_seed2.json", [](ordered_json& r) { r["settings"]["tokens"] = 100; });
  edit("receipt_seed3.json", [](ordered_json& r) { r.erase("audit"); });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("mode \"ngram-published\" breaks the rules"), HasSubstr("only a part"),
                                      HasSubstr("has no audit")));
}

TEST_F(Check, ModesWithAdditions) {
  edit("receipt_seed1.json", [](ordered_json& r) { r["settings"]["mode"] = "lora-ttt+tilt"; });
  edit("receipt_seed2.json", [](ordered_json& r) { r["settings"]["mode"] = "slot+tilt"; });
  edit("receipt_seed3.json", [](ordered_json& r) { r["settings"]["mode"] = "lora-ttt+magic"; });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("mode \"slot+tilt\" is not in the sources"),
                                      HasSubstr("mode \"lora-ttt+magic\" breaks the rules")));
}

TEST_F(Check, EveryTestOfTheAudit) {
  edit("receipt_seed1.json", [](ordered_json& r) { r["audit"]["tests"].erase(9); });  // T10
  edit("receipt_seed2.json", [](ordered_json& r) { r["audit"]["tests"][2]["held"] = false; });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("does not show that T10 held"), HasSubstr("test T3 of the audit failed"),
                                      HasSubstr("does not show that T3 held")));
}

TEST_F(Check, ComplianceIsStated) {
  edit("submission.json", [](ordered_json& s) { s["compliance"]["eval_under_600s"] = false; });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("does not state eval_under_600s")));
}

TEST_F(Check, TheTableOfTheReadme) {
  replace("README.md", bpb_text(3), "1.00050000");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("README.md: its table lacks seed 3")));
}

TEST_F(Check, TheScriptStartsTheRunsAsTheyWere) {
  const std::string script = get(out_ / "run.sh");
  EXPECT_THAT(script, HasSubstr("\nmpirun -n 8 source/build/bin/fairway-record recipe.toml --data \"$1\" --out runs/seed2 "
                                "--seed 2 --backend cuda"));
  EXPECT_THAT(get(out_ / "requirements.txt"), HasSubstr("CUDA"));
  replace("run.sh", "mpirun -n 8 source/build/bin/fairway-record recipe.toml --data \"$1\" --out runs/seed2",
          "source/build/bin/fairway-record recipe.toml --data \"$1\" --out runs/seed2");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("run.sh: does not start seed 2 with 8 ranks")));
  put(out_ / "run.sh", script);
  replace("run.sh", "--seed 3 --backend cuda", "--seed 3 --backend cpu");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("does not start seed 3 on the backend \"cuda\"")));
  put(out_ / "run.sh", script.substr(0, script.find("mpirun")));
  EXPECT_THAT(problems(), testing::SizeIs(3));
}

TEST_F(Check, AScriptOfAnyLength) {
  const std::string script = get(out_ / "run.sh");
  put(out_ / "run.sh", script + "x --seed " + std::string(1'000'000, '1') + "\n");
  EXPECT_THAT(problems(), IsEmpty());
  put(out_ / "run.sh", script + "mpirun -n " + std::string(400, '9') + " x --seed 2 \n");
  EXPECT_THAT(problems(), Contains(HasSubstr("does not start seed 2 with 8 ranks")));
}

TEST_F(Check, ReceiptsWhosePartsAreOfOtherTypes) {
  for (const char* key : {"score", "records", "audit", "artifact", "settings", "data", "legal"}) {
    for (const ordered_json& odd :
         {ordered_json(), ordered_json(3), ordered_json("a"), ordered_json::array({1}), ordered_json::object()}) {
      const std::string kept = get(out_ / "receipt_seed2.json");
      edit("receipt_seed2.json", [&](ordered_json& r) { r[key] = odd; });
      EXPECT_THAT(problems(), Contains(HasSubstr("receipt_seed2.json"))) << key << " " << odd.dump();
      put(out_ / "receipt_seed2.json", kept);
    }
  }
}

TEST_F(Check, TextsThatAreApart) {
  edit("receipt_seed1.json", [](ordered_json& r) { r["data"]["shared_documents"] = 1; });
  edit("receipt_seed2.json", [](ordered_json& r) { r["data"].erase("shared_documents"); });
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("share no document"), HasSubstr("share no document")));
}

TEST_F(Check, ArtifactsThatAreShipped) {
  put(out_ / "model_seed1.fwy", "artifact of seed 1");
  EXPECT_THAT(problems(), IsEmpty());
  put(out_ / "model_seed1.fwy", "artifact of seed 7");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("model_seed1.fwy: is not the artifact")));
}

TEST_F(Check, AFolderIsNotWrittenOver) {
  EXPECT_THROW(write_folder(out_, facts(), about(), {bundle_, "true", "0.1"}), InputError);
}

TEST_F(MadeRuns, AComparisonIsTold) {
  About with = about();
  with.against = {"pr1019"};
  const ordered_json s = submission_json(facts(), with, {bundle_, "true", "0.1"});
  EXPECT_EQ(s["comparison_baseline"], "pr1019");
  EXPECT_LT(s["delta_vs_baseline_bpb"].get<double>(), -0.1);
  EXPECT_TRUE(s["record_rule_held"].get<bool>());
  EXPECT_THAT(readme_text(facts(), with, s), HasSubstr("## Significance"));
  std::vector<RunFacts> other = facts();
  for (RunFacts& run : other) run.score["bytes"] = 1280;
  EXPECT_THROW(submission_json(other, with, {bundle_, "true", "0.1"}), InputError) << "another text than pr1019's";
}

}  // namespace
}  // namespace fairway::submission
