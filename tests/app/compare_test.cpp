// `fairway compare` on score files with the published seeds.
#include <fstream>

#include "app/world.h"

namespace {

Args score_files(const ScratchFolder& scratch, const std::string& set, const std::vector<double>& nats,
                 const nlohmann::json& change = nlohmann::json::object()) {
  Args names;
  for (size_t i = 0; i < nats.size(); ++i) {
    const Path path = scratch / (set + std::to_string(i) + ".json");
    nlohmann::json score{{"val_loss", nats[i]},
                         {"val_bpb", nats[i] / 1.68846},
                         {"mode", "sliding"},
                         {"tokens", 62'021'632},
                         {"bytes", 151'080'363},
                         {"legal", true},
                         {"packed", true},
                         {"whole", true},
                         {"text", std::string(64, 'a')},
                         {"tokenizer", std::string(64, 'b')},
                         {"context", 2048},
                         {"stride", 64}};
    score.update(change);
    std::ofstream(path) << score;
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

TEST(Compare, TakesTheFolderThatScoreWroteTo) {
  const ScratchFolder scratch;
  Args folders;
  for (const std::string& file : score_files(scratch, "new", {1.87, 1.871, 1.872})) {
    folders.push_back(scratch / ("folder" + std::to_string(folders.size())));
    std::filesystem::create_directories(folders.back());
    std::filesystem::rename(file, Path(folders.back()) / "score.json");
  }
  EXPECT_LT(run_json(compare_args(folders, {"pr1019"}))["delta_bpb"].get<double>(), 0);
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

// Scores of different things are no better and no worse than each other, whatever their numbers say.
TEST(Compare, RefusesScoresOfDifferentThings) {
  const ScratchFolder scratch;
  const std::vector<double> worse{1.9, 1.91, 1.92}, better{1.5, 1.51, 1.52};
  const Args base = score_files(scratch, "base", worse);
  const auto refused = [&](const nlohmann::json& change, const Args& against, const std::string& named) {
    const Outcome outcome = run_program(compare_args(score_files(scratch, "new", better, change), against));
    EXPECT_EQ(outcome.status, 2) << change << outcome.text();
    EXPECT_NE(outcome.err.find(named), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out.find("record"), std::string::npos) << outcome.out;
  };
  refused({{"text", std::string(64, 'c')}}, base, "different things: text SHA-256 ");
  refused({{"tokens", 640}, {"bytes", 1500}, {"whole", false}}, base, "number of targets ");
  refused({{"tokenizer", std::string(64, 'd')}, {"tokens", 640}, {"bytes", 1500}, {"whole", false}}, base,
          "not all of the text was scored");
  refused({{"packed", false}}, base, "weights as trained");
  refused({{"text", nullptr}}, base, "has no \"text\"");
  refused({{"bytes", 1'000'000}}, {"pr1019"}, "official validation text");
  refused({{"whole", false}, {"bytes", 1'000'000}}, {"pr1019"}, "the first 1000000 bytes");
  refused({{"packed", false}}, {"pr1019"}, "weights as trained");
  Args mixed = score_files(scratch, "one", {1.5});
  mixed.push_back(score_files(scratch, "two", {1.6}, {{"context", 1024}})[0]);
  const Outcome sides = run_program(compare_args(mixed, base));
  EXPECT_EQ(sides.status, 2) << sides.text();
  EXPECT_NE(sides.err.find("context 2048 and 1024"), std::string::npos) << sides.err;
  mixed.back() = score_files(scratch, "inside", {1.6}, {{"documents", true}})[0];
  const Outcome inside = run_program(compare_args(mixed, base));
  EXPECT_EQ(inside.status, 2) << inside.text();
  EXPECT_NE(inside.err.find("documents false and true"), std::string::npos) << inside.err;
}

TEST(Compare, OtherTokenizersAndModesOfOneTextCompare) {
  const ScratchFolder scratch;
  const Args base = score_files(scratch, "base", {1.9, 1.91, 1.92});
  const nlohmann::json change{{"tokenizer", std::string(64, 'd')}, {"tokens", 40'540'160}, {"mode", "ttt"}};
  const nlohmann::json result = run_json(compare_args(score_files(scratch, "new", {1.5, 1.51, 1.52}, change), base));
  EXPECT_EQ(result["tested"], "bits per byte");
  EXPECT_TRUE(result["record"].get<bool>());
  const nlohmann::json leaky{{"mode", "slot-published"}, {"legal", false}};
  const nlohmann::json barred = run_json(compare_args(score_files(scratch, "leak", {1.5, 1.51, 1.52}, leaky), base));
  EXPECT_FALSE(barred["record"].get<bool>());
  EXPECT_NE(barred["barred"].get<std::string>().find("breaks the rules"), std::string::npos);
}

}  // namespace
