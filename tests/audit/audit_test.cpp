// The audit passes every legal mode and catches every evaluator that breaks a rule (scoring spec §3.2, T10).
#include "audit/audit.h"

#include <gtest/gtest.h>

#include "audit/negative_controls.h"
#include "score/tiny_score.h"

namespace fairway::score_test {
namespace {

struct Slice {
  explicit Slice(ScoreMode mode, int64_t targets = 340) : machine(2) {
    const Recipe recipe = tiny_recipe();
    input.model = tiny_model(recipe);
    input.settings = settings_for_slice(settings_of(recipe, mode), targets);
    input.stream = tiny_stream(targets);
    input.context = machine.context();
    input.make_executor = [](Queue& queue) { return make_cpu_executor(queue); };
    input.budgets = {.artifact_bytes = 1000, .train_seconds = 10, .score_seconds = 1};
    input.probes = 3;
    input.controls = false;
  }
  Machine machine;
  AuditInput input;
};

std::string text_of(const AuditReport& report) {
  std::string text;
  for (const TestResult& test : report.tests) text += test.id + (test.held ? " held: " : " FAILED: ") + test.detail + "\n";
  return text;
}

class LegalModes : public testing::TestWithParam<ScoreMode> {};

TEST_P(LegalModes, PassEveryTest) {
  Slice slice(GetParam());
  const AuditReport report = audit(slice.input);
  EXPECT_TRUE(report.legal()) << text_of(report);
  EXPECT_EQ(report.tests.size(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Audit, LegalModes,
                         testing::Values(ScoreMode::plain, ScoreMode::sliding, ScoreMode::slot, ScoreMode::ngram,
                                         ScoreMode::ttt, ScoreMode::lora_ttt),
                         [](const auto& test) { return "mode" + std::to_string(static_cast<int>(test.param)); });

TEST(Audit, CarriedSlotPassesEveryTest) {
  Slice slice(ScoreMode::slot);
  slice.input.settings.score.slot.carried = true;
  const AuditReport report = audit(slice.input);
  EXPECT_TRUE(report.legal()) << text_of(report);
}

TEST(Audit, EveryNegativeControlIsCaughtByItsTest) {
  const Slice slice(ScoreMode::sliding);
  for (const ControlCase& control : control_cases())
    EXPECT_TRUE(catch_control(slice.input, control).has_value()) << control.name << " slipped past " << control.test;
}

TEST(Audit, ControlsAreCaughtOnTextOfOneDocumentToo) {
  Slice slice(ScoreMode::sliding);
  for (size_t i = 1; i < slice.input.stream.size(); ++i)
    if (slice.input.stream[i] == 1) slice.input.stream[i] = 9;
  for (const ControlCase& control : control_cases())
    EXPECT_TRUE(catch_control(slice.input, control).has_value()) << control.name << " slipped past " << control.test;
}

TEST(Audit, NegativeControlsFailTheWholeAudit) {
  for (const ScoreMode mode : {ScoreMode::slot_published, ScoreMode::ngram_published}) {
    Slice slice(mode);
    slice.input.probes = 12;
    EXPECT_FALSE(audit(slice.input).legal()) << name_of(mode);
  }
}

TEST(Audit, LegalModesAreNotCaughtByTheSearchForLeaks) {
  const Slice slice(ScoreMode::sliding);
  for (const char* test : {"T1", "T2", "T3", "T5"}) {
    const ControlCase honest{"honest", ScoreMode::slot, NegativeControl::none, test};
    EXPECT_FALSE(catch_control(slice.input, honest).has_value()) << test;
  }
}

TEST(Audit, BudgetsAreHeldOrNot) {
  Slice slice(ScoreMode::plain);
  slice.input.budgets.artifact_bytes = kMostArtifactBytes + 1;
  const AuditReport report = audit(slice.input);
  EXPECT_FALSE(report.legal());
  EXPECT_EQ(report.tests.back().id, "T11");
  EXPECT_FALSE(report.tests.back().held);
}

}  // namespace
}  // namespace fairway::score_test
