// `bench … --against FILE` fails where a timing is slower than it was, and compares nothing that is not the same.
#include <gmock/gmock.h>

#include "app/world.h"
#include "base/file.h"

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class BenchAgainst : public testing::Test {
 protected:
  static Args attention(const Args& more) {
    Args args{"bench", "attention", "--recipe", "smoke", "--seconds", "0.001"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  // The timings of a run, each `times` as long.
  std::string baseline(double times) {
    const Outcome outcome = run_program(attention({"--json"}));
    EXPECT_EQ(outcome.status, 0) << outcome.text();
    json timings = json::parse(outcome.out);
    for (json& line : timings["attention"]) line["median_ms"] = line["median_ms"].get<double>() * times;
    fairway::write_file_atomic(scratch_ / "base.json", timings.dump());
    return scratch_ / "base.json";
  }
  ScratchFolder scratch_;
};

TEST_F(BenchAgainst, HoldsWhereNothingIsSlower) {
  const Outcome outcome = run_program(attention({"--against", baseline(1000), "--json"}));
  EXPECT_EQ(outcome.status, 0) << outcome.text();
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["holds"], true);
  EXPECT_EQ(result["against"].size(), result["attention"].size());
  EXPECT_LT(result["against"][0]["slower_percent"], 0);
}

TEST_F(BenchAgainst, FailsAndNamesWhatIsSlower) {
  const Outcome outcome = run_program(attention({"--against", baseline(0.001)}));
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("slower, more than 3%"), HasSubstr("documents of 512, pass backward")));
  EXPECT_EQ(run_program(attention({"--against", baseline(0.9), "--most-loss", "1000"})).status, 0);
}

TEST_F(BenchAgainst, RefusesTimingsOfSomethingElse) {
  const std::string base = baseline(1);
  const Outcome other = run_program(attention({"--against", base, "--tokens", "256"}));
  EXPECT_EQ(other.status, 2) << other.text();
  EXPECT_THAT(other.err, AllOf(HasSubstr("base.json"), HasSubstr("has no timing of"), HasSubstr("tokens 256")));
  fairway::write_file_atomic(scratch_ / "bad.json", "{\"attention\": [");
  EXPECT_EQ(run_program(attention({"--against", scratch_ / "bad.json"})).status, 2);
  EXPECT_EQ(run_program(attention({"--against", scratch_ / "none.json"})).status, 2);
}

}  // namespace
