// `fairway compare --paired documents` on runs that were trained and scored: a change that is there is found, other settings of
// scoring and records of other scores are refused, and threads change nothing.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class CompareDocuments : public testing::Test {
 protected:
  void SetUp() override {
    make_data(scratch_ / "data");
    for (const auto& [name, steps] : {std::pair{"short", "2"}, std::pair{"long", "12"}}) {
      run_json(train_smoke(scratch_ / "data", at(name), {"--steps", steps, "--seed", "1"}));
      score(name, {});
    }
  }
  std::string at(const std::string& name) const { return scratch_ / name; }
  void score(const std::string& run, const Args& more, const std::string& mode = "plain") {
    Args args{"score", at(run), "--data", at("data"), "--mode", mode, "--out", at(run)};
    args.insert(args.end(), more.begin(), more.end());
    run_json(args);
  }
  Args compare(const Args& more = {}) const {
    Args args{"compare", at("long"), "--against", at("short"), "--paired", "documents"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  std::string refusal() const {
    const Outcome outcome = run_program(compare());
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    return outcome.err;
  }
  ScratchFolder scratch_;
};

TEST_F(CompareDocuments, TellsModelsApartAndSaysNothingOfRecipes) {
  const json result = run_json(compare());
  const json a = json::parse(contents(scratch_ / "long" / "score.json")),
             b = json::parse(contents(scratch_ / "short" / "score.json"));
  EXPECT_NEAR(result["delta_bpb"].get<double>(), a["val_bpb"].get<double>() - b["val_bpb"].get<double>(), 1e-9);
  EXPECT_LT(result["interval"][0], result["delta_bpb"]);
  EXPECT_GT(result["interval"][1], result["delta_bpb"]);
  const bool better = result["delta_bpb"] < 0;  // random tokens: more steps need not help
  EXPECT_TRUE(better ? result["interval"][1] < 0 : result["interval"][0] > 0) << "weights of 2 and of 12 steps";
  EXPECT_EQ(result["about"], "models");
  EXPECT_GT(result["detectable"], 0);
  EXPECT_TRUE(result["seeds_needed"].is_null() && result["recipes"].is_null());
  EXPECT_GT(result["documents"], 10);
  for (const char* threads : {"1", "3"}) EXPECT_EQ(run_json(compare({"--threads", threads})), result);
  const std::string text = run_program(compare()).out;
  EXPECT_THAT(text, HasSubstr(at(better ? "long" : "short") + " is better than " + at(better ? "short" : "long") + " by "));
  EXPECT_THAT(text, HasSubstr("nothing can be said: one run a side"));
  EXPECT_THAT(text, HasSubstr("it tells two models apart that differ by at least"));
}

TEST_F(CompareDocuments, SeveralRunsASideAreAboutRecipes) {
  for (const auto& [name, steps] : {std::pair{"short2", "2"}, std::pair{"long2", "12"}}) {
    run_json(train_smoke(scratch_ / "data", at(name), {"--steps", steps, "--seed", "2"}));
    score(name, {});
  }
  const Args sides{"compare", at("long"), at("long2"), "--against", at("short2"), at("short"), "--paired"};
  for (const char* pairing : {"documents", "both"}) {
    Args args = sides;
    args.push_back(pairing);
    const json result = run_json(args);
    EXPECT_EQ(result["about"], "recipes");
    EXPECT_LT(result["models"]["error"], result["recipes"]["error"]);
    EXPECT_GE(result["seeds_needed"], 2);
    EXPECT_TRUE(result["seeds"].contains("record"));
  }
  EXPECT_EQ(run_json(sides)["paired"], true) << "of seeds, when nothing is said";
  const json one = run_json({"compare", at("long"), at("long2"), "--against", at("short"), "--paired", "documents"});
  EXPECT_EQ(one["recipes"]["borrowed_spread"], true);
}

TEST_F(CompareDocuments, RefusesWhatWasNotScoredAlike) {
  score("short", {"--context", "32"});
  EXPECT_THAT(refusal(), HasSubstr("context 64 and 32"));
  score("short", {}, "sliding");
  EXPECT_THAT(refusal(), HasSubstr("mode plain and sliding"));
  score("short", {"--tokens", "640"});
  EXPECT_THAT(refusal(), HasSubstr("number of targets"));
  score("short", {});
  fs::copy(scratch_ / "long" / "score.records", scratch_ / "short" / "score.records", fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(), HasSubstr("is not what"));
  fs::remove(scratch_ / "short" / "score.records");
  EXPECT_THAT(refusal(), HasSubstr("is missing"));
  for (const Args& args : {Args{"compare", "pr1019", "--against", "pr549", "--paired", "documents"},
                           Args{"compare", at("long"), "--against", at("long"), "--paired", "document"},
                           Args{"compare", at("long"), "--against", at("long"), "--paired", "both"}})
    EXPECT_EQ(run_program(args).status, 2);
}

}  // namespace
