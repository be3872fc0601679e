// `fairway audit`: the legality tests on a slice of the validation stream, and the check of a receipt.
#include "audit/audit.h"

#include <fmt/core.h>

#include "app/receipt_file.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "base/sha256.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct AuditFlags {
  std::shared_ptr<ScoringFlags> common = std::make_shared<ScoringFlags>();
  int64_t probes = 8;
  std::string receipt, verify;
  bool again = false, no_controls = false;
};

constexpr int64_t kSliceWindows = 6;  // contexts in the default slice

std::string table_of(const AuditReport& report) {
  std::string text;
  for (const TestResult& test : report.tests)
    text += fmt::format("{:<4} {:<5} {:<44} {}\n", test.id, test.held ? "held" : "FAILS", test.property, test.detail);
  return text + fmt::format("legal: {}\n", report.legal());
}

int verify(const CommonFlags& common, const AuditFlags& flags) {
  const ordered_json receipt = read_receipt(flags.verify);
  std::vector<std::string> wrong;
  try {
    wrong = verify_receipt(receipt, common, flags.again);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(flags.verify + ": a field of the receipt is missing or of another kind (" + error.what() + ")");
  }
  std::string text = wrong.empty() ? flags.verify + ": holds\n" : "";
  for (const std::string& sentence : wrong) text += flags.verify + ": " + sentence + "\n";
  print_result(common, {{"held", wrong.empty()}, {"problems", wrong}}, text);
  return wrong.empty() ? 0 : 1;
}

AuditReport run_tests(const CommonFlags& common, const AuditFlags& flags, const Scoring& scoring, Machine& machine,
                      double whole_seconds) {
  AuditInput input;
  const auto targets = static_cast<int64_t>(scoring.stream.size()) - 1;
  const int64_t wanted = flags.common->tokens > 0 ? targets : std::min(targets, kSliceWindows * scoring.settings.score.context);
  input.model = scoring.model();
  input.settings = settings_for_slice(scoring.settings, wanted);
  input.stream.assign(scoring.stream.begin(), scoring.stream.begin() + wanted + 1);
  input.text = scoring.stream;
  input.context = {machine.executor.get(), &machine.queue.pool()};
  input.make_executor = [&](Queue& queue) { return make_executor(parse_backend(common.backend), queue); };
  input.budgets = {.artifact_bytes = static_cast<uint64_t>(fs::file_size(scoring.file)), .score_seconds = whole_seconds};
  input.probes = flags.probes;
  input.controls = !flags.no_controls;
  ProgressLine line(common.quiet);
  return audit(input, [&](const std::string& what) {
    if (line.due()) line.show("audit: " + what);
  });
}

int run_audit(const CommonFlags& common, const AuditFlags& flags) {
  if (!flags.verify.empty()) return verify(common, flags);
  if (flags.common->from.empty() || flags.common->data.empty())
    throw InputError("audit: give FILE and --data, or --verify RECEIPT");
  ordered_json receipt;
  if (!flags.receipt.empty()) receipt = read_receipt(flags.receipt);
  const std::unique_ptr<Scoring> scoring = open_scoring(*flags.common);
  if (!receipt.is_null() && (receipt.at("artifact").at("sha256") != sha256_of_file(scoring->file) ||
                             receipt.at("settings").at("mode") != name_of(scoring->settings.score.mode)))
    throw InputError(flags.receipt + ": is the receipt of other bytes or of another mode");
  Machine machine(common);
  const auto whole = static_cast<int64_t>(scoring->held_out.tokens.size()) - 1;
  const double seconds =
      make_evaluator(scoring->model(), scoring->settings, {machine.executor.get(), &machine.queue.pool()})->estimate(whole);
  const AuditReport report = run_tests(common, flags, *scoring, machine, seconds);
  if (!receipt.is_null()) {
    add_tests(receipt, report, static_cast<int64_t>(scoring->stream.size()) - 1);
    write_receipt(flags.receipt, receipt);
  }
  print_result(common,
               {{"legal", report.legal()}, {"mode", name_of(scoring->settings.score.mode)}, {"tests", tests_json(report)}},
               table_of(report));
  return report.legal() ? 0 : 1;
}

}  // namespace

void add_audit(CLI::App& program) {
  auto flags = std::make_shared<AuditFlags>();
  CLI::App* command = add_command(program, "audit", "is a score legal? tests of causality, normalisation, order and budgets",
                                  [flags](const CommonFlags& common) { return run_audit(common, *flags); });
  add_scoring_flags(*command, flags->common, false);
  command->add_option("--probes", flags->probes, "random places to change (20 and more: every change at every place)")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command->add_flag("--no-controls", flags->no_controls, "leave out T10, the evaluators that must fail");
  command->add_option("--receipt", flags->receipt, "receipt of the score, which gets the tests' results");
  command->add_option("--verify", flags->verify, "check a receipt: files, program and tests are as it says");
  command->add_flag("--again", flags->again, "with --verify: score again and compare every record");
}

}  // namespace fairway::app
