// `fairway compare` on score files with the published seeds.
#include <fstream>

#include "app/world.h"

namespace {

Args score_files(const ScratchFolder& scratch, const std::string& set, const std::vector<double>& nats) {
  Args names;
  for (size_t i = 0; i < nats.size(); ++i) {
    const Path path = scratch / (set + std::to_string(i) + ".json");
    std::ofstream(path) << nlohmann::json{{"val_loss", nats[i]}, {"val_bpb", nats[i] / 1.68846}};
    names.push_back(path.string());
  }
  return names;
}

Args compare_args(const Args& runs, const Args& against, const Args& more = {}) {
  Args args{"compare"};
  args.insert(args.end(), runs.begin(), runs.end());
  args.push_back("--against");
  args.insert(args.end(), against.begin(), against.end());
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Compare, TellsDifferenceTestAndRecord) {
  const ScratchFolder scratch;
  const Args fresh = score_files(scratch, "new", {1.87174, 1.87187, 1.87306});
  const Args base = score_files(scratch, "old", {1.88276292, 1.88156874, 1.88220393});
  const nlohmann::json result = run_json(compare_args(fresh, base));
  EXPECT_NEAR(result["delta_nats"].get<double>(), 1.87222333 - 1.88217853, 1e-7);
  EXPECT_NEAR(result["delta_bpb"].get<double>(), (1.87222333 - 1.88217853) / 1.68846, 1e-7);
  EXPECT_LT(result["p"].get<double>(), 0.01);
  EXPECT_TRUE(result["record"].get<bool>());
  EXPECT_FALSE(run_json(compare_args(base, fresh))["record"].get<bool>());
  EXPECT_EQ(run_json(compare_args(fresh, base, {"--paired"}))["df"], 2);
}

TEST(Compare, KnowsThePublishedSystems) {
  const nlohmann::json vector = run_json({"compare", "pr1019", "--against", "pr549"});  // scoring spec §7.5
  EXPECT_NEAR(vector["t"].get<double>(), -11.834, 5e-4);
  EXPECT_NEAR(vector["df"].get<double>(), 3.306, 5e-4);
  EXPECT_EQ(vector["tested"], "bits per byte");
  const ScratchFolder scratch;
  const Args fresh = score_files(scratch, "new", {1.87, 1.871, 1.872});
  EXPECT_TRUE(run_json(compare_args(fresh, {"pr1019"}))["record"].get<bool>());
  EXPECT_EQ(run_program(compare_args(fresh, {"pr1019", "pr549"})).status, 2);
  EXPECT_EQ(run_program(compare_args(fresh, {"pr10199"})).status, 2);
}

TEST(Compare, RefusesWhatItCannotTest) {
  const ScratchFolder scratch;
  const Args two = score_files(scratch, "two", {1.0, 1.1}), three = score_files(scratch, "three", {1.0, 1.1, 1.2});
  std::ofstream(scratch / "empty.json") << "{}";
  for (const Args& args : {compare_args({two[0]}, three), compare_args(two, three, {"--paired"}),
                           compare_args({two[0], (scratch / "empty.json").string()}, three),
                           compare_args({two[0], (scratch / "absent").string()}, three)}) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_FALSE(outcome.err.empty());
  }
}

}  // namespace
