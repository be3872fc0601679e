// Folders of several runs: which are found, under which names, and what their ledgers tell; the state of a run that goes on.
#include "report/groups.h"

#include "base/error.h"
#include "report/page.h"
#include "report/records.h"
#include "report/report_fixture.h"
#include "report/run_list.h"
#include "report/run_state.h"

namespace fairway {
namespace {

using nlohmann::ordered_json;

TEST(Groups, EqualNamesGetAsMuchOfTheirPathsAsItTakes) {
  const std::vector<fs::path> folders{"/x/a/seed1", "/x/b/seed1/", "/y/b/seed1"};
  EXPECT_EQ(distinct_names(folders), (std::vector<std::string>{"x/a/seed1", "x/b/seed1", "y/b/seed1"}));
  const std::vector<fs::path> apart{"/x/a", "/x/b"}, same{"/x/a", "/x/a"};
  EXPECT_EQ(distinct_names(apart), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(distinct_names(same).size(), 2U);
}

TEST(Groups, NamesOfAQueryAreDecoded) {
  EXPECT_EQ(names_in_query("run=a%2Fb&x=1&run=c+d%"), (std::vector<std::string>{"a/b", "c d%"}));
  EXPECT_TRUE(names_in_query("").empty());
  EXPECT_TRUE(names_in_query("ran=1&&").empty());
}

TEST_F(Report, AFolderListsRunsSeedsAndSweepsWithoutFollowingLinks) {
  const fs::path root = folder_ / "root";
  copy_run(root / "one");
  copy_run(root / "seeds" / "seed1");
  write_at(root / "seeds" / "seeds.json", R"({"seeds":[1,2],"statistics":{"mean":{"score_bpb":2.5}}})");
  copy_run(root / "sweep" / "rung1" / "trial1");
  write_at(root / "sweep" / "sweep.json", R"({"results":{}})");
  fs::create_directory_symlink(folder_, root / "link");
  write_at(root / "broken" / "recipe.toml", "[model");
  std::vector<std::string> names;
  for (const ListedRun& one : list_runs(root)) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"broken", "one", "seeds", "seeds/seed1", "sweep"}));
  const ordered_json rows = folder_rows(root)["runs"];
  EXPECT_EQ(rows[0]["state"], "cannot be read");
  EXPECT_EQ(rows[1]["state"], "stopped in train");
  EXPECT_EQ(rows[1]["steps"], kSteps);
  EXPECT_DOUBLE_EQ(rows[2]["score_bpb"].get<double>(), 2.5);
  EXPECT_EQ(folder_data(root, "run=one")->at("page"), "run");
  EXPECT_EQ(folder_data(root, "run=one&run=seeds%2Fseed1")->at("page"), "compare");
  EXPECT_EQ(folder_data(root, "run=seeds")->at("page"), "seeds");
  for (const char* outside : {"run=..", "run=../root/one", "run=/etc", "run=link", "run=one&run=absent"})
    EXPECT_FALSE(folder_data(root, outside)) << outside;
}

TEST_F(Report, SidesAreRunsSeedsOrTheBestTrial) {
  const fs::path sweep = folder_ / "sweep";
  for (const char* trial : {"rung1/trial1", "rung2/trial1", "rung2/trial2"}) copy_run(sweep / trial);
  write_at(sweep / "sweep.json",
           R"({"results":{"rung1/trial1":{"score":1,"set":["a=1"]},"rung2/trial1":{"score":4,"set":["a=1"]},
    "rung2/trial2":{"score":3,"set":["a=2"]},"rung2/../x":{"score":0}}})");
  EXPECT_EQ(side_of(sweep).runs, (std::vector<fs::path>{sweep / "rung2/trial2"}));
  const ordered_json told = sweep_data(sweep).data;
  EXPECT_EQ(told["keys"], ordered_json({"a"}));
  EXPECT_EQ(told["trials"].size(), 3U);
  write_at(folder_ / "empty" / "seeds.json", R"({"seeds":[1]})");
  EXPECT_THROW(side_of(folder_ / "empty"), InputError);
  write_at(folder_ / "no" / "seeds.json", "[]");
  EXPECT_THROW(side_of(folder_ / "no"), InputError);
}

TEST_F(Report, RecipesDifferInTheirKeysButNotInSeedsOfASide) {
  const std::vector<ReportSide> sides{
      {"a", {copy_run(folder_ / "a1", {"train.seed=1"}), copy_run(folder_ / "a2", {"train.seed=2"})}},
      {"b", {copy_run(folder_ / "b", {"train.seed=3", "optim.matrix.lr=0.5"})}}};
  const ordered_json found = recipe_differences(sides);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]["key"], "optim.matrix.lr");
  EXPECT_EQ(found[0]["values"][1], 0.5);
}

TEST_F(Report, StateFollowsTheLedgerAndTheLock) {
  const Recipe timed = smoke_with({"train.seconds=400", "train.steps=0"});
  EXPECT_EQ(run_state(folder_, timed)["phase"], "train");
  EXPECT_FALSE(run_state(folder_, timed)["running"].get<bool>());
  EXPECT_DOUBLE_EQ(run_state(folder_, timed)["seconds_left"].get<double>(), 100);
  write(".lock", std::to_string(getpid()) + "\n");
  EXPECT_TRUE(run_state(folder_, timed)["running"].get<bool>());
  write(".lock", "nobody");
  EXPECT_FALSE(is_being_written(folder_));
  write("run.json",
        R"({"plan":{"phases":[{"name":"train"},{"name":"pack","seconds":7},{"name":"score"}]},"phases":{"train":{}}})");
  const ordered_json packing = run_state(folder_, timed);
  EXPECT_EQ(packing["phase"], "pack");
  EXPECT_EQ(packing["done"], ordered_json({"train"}));
  EXPECT_DOUBLE_EQ(packing["seconds_left"].get<double>(), 7);
  EXPECT_TRUE(packing["more_to_come"].get<bool>());
  for (const char* odd : {R"({"plan":3})", R"({"plan":{"phases":[1,{"name":2}]},"phases":[]})"}) {
    write("run.json", odd);
    EXPECT_NO_THROW(run_state(folder_, timed)) << odd;
  }
}

TEST_F(Report, TheEndOfALongFileOfRecords) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += R"({"step":)" + std::to_string(i) + "}\n";
  write("long.jsonl", text + "{\"cut");
  const std::vector<ordered_json> records = last_records(folder_ / "long.jsonl");
  EXPECT_EQ(records.back()["step"], 19999);
  EXPECT_GT(records.size(), 1000U);
  write("one.jsonl", std::string(100000, 'x'));
  EXPECT_TRUE(last_records(folder_ / "one.jsonl").empty());
  EXPECT_TRUE(last_records(folder_ / "absent.jsonl").empty());
}

}  // namespace
}  // namespace fairway
