// Training text that holds documents of the validation text: refused, or trained on at the price of never being legal.
#include <gmock/gmock.h>

#include "app/world.h"
#include "data/shard.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;

// The validation text, which make_data() draws with seed 3, as a further training shard.
void leak(const Path& data) {
  fairway::data::write_shard(data / "fineweb_train_000002.bin", random_tokens(1500, kSmokeVocab, 3));
}

Args run_smoke(const Path& data, const Path& out, const Args& more = {}) {
  Args args{"run", "smoke", "--data", data.string(), "--out", out.string(), "--steps", "3", "--threads", "2"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

json last_test(const Path& run) { return json::parse(contents(run / "audit.json"))["tests"].back(); }
json told_by_receipt(const Path& run) { return json::parse(contents(run / "receipt.json"))["data"]["shared_documents"]; }

TEST(SharedDocuments, ARunWithoutAnySaysSo) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const Outcome done = run_program(run_smoke(scratch / "data", scratch / "run"));
  ASSERT_EQ(done.status, 0) << done.text();
  EXPECT_EQ(last_test(scratch / "run")["id"], "T12");
  EXPECT_EQ(last_test(scratch / "run")["held"], true);
  EXPECT_THAT(last_test(scratch / "run")["detail"].get<std::string>(), HasSubstr("none of the validation text's"));
  EXPECT_EQ(told_by_receipt(scratch / "run"), 0);
}

TEST(SharedDocuments, AreRefusedBeforeTraining) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  leak(scratch / "data");
  for (const Args& args :
       {train_smoke(scratch / "data", scratch / "trained", {"--steps", "3"}), run_smoke(scratch / "data", scratch / "run")}) {
    const Outcome refused = run_program(args);
    EXPECT_EQ(refused.status, 2) << refused.text();
    EXPECT_THAT(refused.err, HasSubstr("documents are among the"));
    EXPECT_THAT(refused.err, HasSubstr("--allow-shared-documents"));
  }
  EXPECT_EQ(contents(scratch / "trained" / "metrics.jsonl"), "");
  const Outcome inspected = run_program({"data", "inspect", (scratch / "data").string(), "--json"});
  EXPECT_EQ(inspected.status, 2);
  EXPECT_GT(json::parse(inspected.out)["shared_documents"].get<int>(), 10);
}

TEST(SharedDocuments, OnceAllowedMarkTheRun) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  leak(scratch / "data");
  const Outcome done = run_program(run_smoke(scratch / "data", scratch / "run", {"--allow-shared-documents"}));
  EXPECT_EQ(done.status, 1) << done.text();
  EXPECT_EQ(last_test(scratch / "run")["held"], false);
  EXPECT_GT(told_by_receipt(scratch / "run").get<int>(), 10);
  EXPECT_EQ(json::parse(contents(scratch / "run" / "audit.json"))["legal"], false);
}

}  // namespace
