// The audit passes every legal mode and catches every evaluator that breaks a rule (scoring spec §3.2, T10).
#include "audit/audit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "audit/negative_controls.h"
#include "audit/probes.h"
#include "audit/slice.h"

namespace fairway::score_test {
namespace {

std::string text_of(const AuditReport& report) {
  std::string text;
  for (const TestResult& test : report.tests) text += test.id + (test.held ? " held: " : " FAILED: ") + test.detail + "\n";
  return text;
}

class LegalModes : public testing::TestWithParam<ScoringMode> {};

TEST_P(LegalModes, PassEveryTest) {
  Slice slice(GetParam());
  const AuditReport report = audit(slice.input);
  EXPECT_TRUE(report.legal()) << text_of(report);
  EXPECT_EQ(report.tests.size(), 11U);
}

INSTANTIATE_TEST_SUITE_P(Audit, LegalModes,
                         testing::Values(ScoringMode{ScoreMode::plain}, ScoringMode{ScoreMode::sliding},
                                         ScoringMode{ScoreMode::slot}, ScoringMode{ScoreMode::ttt},
                                         ScoringMode{ScoreMode::lora_ttt}, ScoringMode{ScoreMode::sliding, true},
                                         ScoringMode{ScoreMode::slot, true}, ScoringMode{ScoreMode::ttt, true},
                                         ScoringMode{ScoreMode::lora_ttt, true}, ScoringMode{ScoreMode::ttt, false, true},
                                         ScoringMode{ScoreMode::lora_ttt, false, true},
                                         ScoringMode{ScoreMode::lora_ttt, true, true}),
                         [](const auto& test) {
                           std::string name = name_of(test.param);
                           std::ranges::replace_if(
                               name, [](char c) { return c == '-' || c == '+'; }, '_');
                           return name;
                         });

TEST(Audit, CarriedSlotPassesEveryTest) {
  Slice slice({ScoreMode::slot});
  slice.input.settings.score.slot.carried = true;
  const AuditReport report = audit(slice.input);
  EXPECT_TRUE(report.legal()) << text_of(report);
}

// The recipe's phases begin after thousands of documents; those of a slice inside of it, and T2 sees that they do.
TEST(Audit, PhasesBeginInsideTheSlice) {
  Slice slice({ScoreMode::lora_ttt});
  Recipe recipe = tiny_recipe();
  recipe.score.lora.phases = 3;
  recipe.score.lora.phase_lr = 0.02;
  const int64_t bos = recipe.model.bos;
  slice.input.settings = settings_for_slice(settings_of(recipe, ScoreMode::lora_ttt), slice.input.stream, bos, false);
  const LoraRecipe& lora = slice.input.settings.score.lora;
  EXPECT_LT(lora.phase_documents, std::ranges::count(slice.input.stream, bos));
  EXPECT_LE(lora.phases, lora.phase_documents);
  const AuditReport report = audit(slice.input);
  EXPECT_TRUE(report.legal()) << text_of(report);
  EXPECT_NE(text_of(report).find("through a phase"), std::string::npos) << text_of(report);
  slice.input.settings.score.lora.phase_lr = 0;
  EXPECT_FALSE(audit(slice.input).legal()) << "phases that learn nothing are found out";
}

TEST(Audit, ASliceIsWhereTheDocumentsAre) {
  std::vector<uint16_t> text(100, 7);
  for (const size_t at : {0, 40, 50, 55, 60, 90}) text[at] = 1;
  const DocumentPart part = most_documents(text, 25, 1);
  EXPECT_EQ(part.begin, 40);
  EXPECT_EQ(part.documents, 4);
  EXPECT_EQ(most_documents(text, 200, 1).documents, 0);
}

TEST(Audit, EveryNegativeControlIsCaughtByItsTest) {
  const Slice slice({ScoreMode::sliding});
  for (const ControlCase& control : control_cases()) {
    EXPECT_EQ(control_text(slice.input, control).note, "") << control.name << ": the slice has documents enough";
    EXPECT_TRUE(catch_control(slice.input, control).has_value()) << control.name << " slipped past " << control.test;
  }
}

std::vector<uint16_t> without_documents(std::vector<uint16_t> stream) {
  for (size_t i = 1; i < stream.size(); ++i)
    if (stream[i] == 1) stream[i] = 9;
  return stream;
}

const ControlCase& sorted_documents() {
  static const std::vector<ControlCase> cases = control_cases();
  return *std::find_if(cases.begin(), cases.end(),
                       [](const ControlCase& c) { return c.control == NegativeControl::lora_length_sorted; });
}

TEST(Audit, ControlsAreCaughtOnTextOfOneDocumentToo) {
  Slice slice({ScoreMode::sliding});
  slice.input.stream = without_documents(slice.input.stream);
  for (const ControlCase& control : control_cases()) {
    EXPECT_TRUE(catch_control(slice.input, control).has_value()) << control.name << " slipped past " << control.test;
    const std::vector<uint16_t> stream = control_text(slice.input, control).stream;
    EXPECT_EQ(std::equal(stream.begin(), stream.end(), slice.input.stream.begin()),
              control.control != NegativeControl::lora_length_sorted)
        << control.name;
  }
  EXPECT_NE(control_text(slice.input, sorted_documents()).note.find("added document starts"), std::string::npos);
}

TEST(Audit, AnOrderOfDocumentsIsTestedWhereTheTextHasThem) {
  Slice slice({ScoreMode::sliding});
  std::vector<uint16_t> text = without_documents(tiny_stream(700));
  const std::vector<uint16_t> rest = tiny_stream(600);
  text.insert(text.end(), rest.begin(), rest.end());
  slice.input.stream.assign(text.begin(), text.begin() + 341);
  slice.input.text = text;
  const ControlText chosen = control_text(slice.input, sorted_documents());
  EXPECT_NE(chosen.note.find("documents from token"), std::string::npos) << chosen.note;
  EXPECT_LE(chosen.stream.size(), slice.input.stream.size());
  EXPECT_NE(std::search(text.begin(), text.end(), chosen.stream.begin(), chosen.stream.end()), text.end());
  EXPECT_TRUE(catch_control(slice.input, sorted_documents()).has_value());
}

TEST(Audit, PhasesInTheOrderOfTheStreamAreNoLeak) {
  const Slice slice({ScoreMode::sliding});
  const ControlCase honest{"documents in the order of the stream", ScoreMode::lora_ttt, NegativeControl::none, "T2"};
  EXPECT_FALSE(catch_control(slice.input, honest).has_value());
}

TEST(Audit, NegativeControlsFailTheWholeAudit) {
  for (const ScoreMode mode : {ScoreMode::slot_published, ScoreMode::ngram_published}) {
    Slice slice({mode});
    slice.input.probes = 12;
    EXPECT_FALSE(audit(slice.input).legal()) << name_of(mode);
  }
}

TEST(Audit, LegalModesAreNotCaughtByTheSearchForLeaks) {
  const Slice slice({ScoreMode::sliding});
  for (const char* test : {"T1", "T2", "T3", "T5"}) {
    const ControlCase honest{"honest", ScoreMode::slot, NegativeControl::none, test};
    EXPECT_FALSE(catch_control(slice.input, honest).has_value()) << test;
  }
}

TEST(Audit, ControlsAreCaughtWhereWindowsDoNotOverlap) {
  Slice slice({ScoreMode::sliding});
  slice.input.settings.score.stride = slice.input.settings.score.context;
  for (const ControlCase& control : control_cases())
    EXPECT_TRUE(catch_control(slice.input, control).has_value()) << control.name << " slipped past " << control.test;
}

TEST(Audit, AScoreThatIsAnotherWhereNothingCanBeOpenedFails) {
  Slice slice({ScoreMode::plain});
  const auto isolation = [&] {
    const AuditReport report = audit(slice.input);
    return *std::find_if(report.tests.begin(), report.tests.end(), [](const TestResult& test) { return test.id == "T7"; });
  };
  EXPECT_TRUE(isolation().held);
  slice.input.records_alone = [](std::span<const uint16_t>) { return std::string("other records"); };
  EXPECT_FALSE(isolation().held);
  slice.input.records_alone = [](std::span<const uint16_t>) -> std::string { throw WorkError("no device"); };
  EXPECT_FALSE(isolation().held);
  EXPECT_NE(isolation().detail.find("no device"), std::string::npos);
}

TEST(Audit, SharedDocumentsAreNeverLegal) {
  Slice slice({ScoreMode::plain}, 120);
  slice.input.probes = 1;
  const AuditReport alone = audit(slice.input);
  EXPECT_EQ(alone.tests.back().id, "T12");
  EXPECT_EQ(alone.tests.back().detail, "not known");
  EXPECT_TRUE(alone.legal()) << "a lone artifact does not tell";
  slice.input.texts = {0, "none of them"};
  EXPECT_TRUE(audit(slice.input).legal());
  slice.input.texts = {1, "one of them"};
  const AuditReport shared = audit(slice.input);
  EXPECT_FALSE(shared.tests.back().held);
  EXPECT_EQ(shared.tests.back().detail, "one of them");
  EXPECT_FALSE(shared.legal());
}

TEST(Audit, BudgetsAreHeldOrNot) {
  Slice slice({ScoreMode::plain});
  const auto last_test = [&] { return audit(slice.input).tests.at(slice.input.controls ? 10 : 9); };
  slice.input.budgets.artifact_bytes = kMostArtifactBytes - 100;
  slice.input.budgets.code_bytes = 100;
  EXPECT_EQ(last_test().id, "T11");
  EXPECT_TRUE(last_test().held);
  slice.input.budgets.code_bytes = 101;
  EXPECT_FALSE(last_test().held);
  slice.input.budgets.code_bytes = 0;
  slice.input.budgets.train_seconds = 601;
  EXPECT_FALSE(last_test().held);
  slice.input.budgets.train_seconds = 599;
  EXPECT_TRUE(last_test().held);
  slice.input.budgets.calibration_seconds = 2;
  EXPECT_FALSE(last_test().held) << "calibration on training data counts";
  slice.input.budgets.train_seconds = -1;
  EXPECT_NE(last_test().detail.find("not known"), std::string::npos);
}

}  // namespace
}  // namespace fairway::score_test
