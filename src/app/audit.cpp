// `fairway audit`: the legality tests on a slice of the validation stream, and the check of a receipt.
#include "audit/audit.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/isolated.h"
#include "app/machine_facts.h"
#include "app/named_inputs.h"
#include "app/receipt_file.h"
#include "app/run_memory.h"
#include "app/ssh_signature.h"
#include "app/stages.h"
#include "app/verify_receipt.h"
#include "audit/probes.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress_line.h"
#include "base/writer_lock.h"
#include "bundle/code_bytes.h"
#include "report/counted_calibration.h"
#include "report/run_origin.h"
#include "report/shared_documents.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using pipeline::AuditRequest;

struct AuditFlags {
  std::shared_ptr<ScoreRequest> score = std::make_shared<ScoreRequest>();
  pipeline::AuditRequest request;
  std::string verify, sign, signers;
  bool again = false, no_controls = false;
};

// Contexts in the default slice. Adapters take a pass over a window for every chunk, many times the work of a window.
constexpr int64_t kSliceWindows = 6, kSliceWindowsOfAdapters = 3;

double counted_calibration_beside(const fs::path& file) {
  const fs::path packed = file.parent_path() / "pack.json";
  if (!fs::is_regular_file(packed)) return 0;
  return counted_calibration(parse_json_or_discard<ordered_json>(read_file(packed), packed.string()));
}

std::string table_of(const AuditReport& report) {
  std::string text;
  for (const TestResult& test : report.tests)
    text += fmt::format("{:<4} {:<5} {:>6.1f} s  {:<44} {}\n", test.id, test.held ? "held" : "FAILS", test.seconds,
                        test.property, test.detail);
  return text + fmt::format("legal: {}\n", report.legal());
}

// Runs `work` on the fields of a receipt; a sealed file may still lack some.
template <class Work>
auto reading_receipt(const std::string& path, Work work) {
  try {
    return work();
  } catch (const nlohmann::json::exception& error) {
    throw InputError(path + ": a field of the receipt is missing or has the wrong type (" + error.what() + ")");
  }
}

int verify(const CommonFlags& common, const AuditFlags& flags) {
  const VerifyFlags asked{flags.verify,           flags.score->from, flags.score->data,
                          flags.score->tokenizer, flags.signers,     flags.again};
  const auto [wrong, notes] = reading_receipt(flags.verify, [&] { return verify_receipt(asked, common); });
  std::string text = wrong.empty() ? fmt::format("{}: holds{}\n", flags.verify,
                                                 notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, "; ")))
                                   : "";
  for (const std::string& sentence : wrong) text += flags.verify + ": " + sentence + "\n";
  print_result(common, {{"held", wrong.empty()}, {"problems", wrong}, {"notes", notes}}, text);
  return wrong.empty() ? 0 : 1;
}

int sign(const CommonFlags& common, const AuditFlags& flags) {
  read_receipt(flags.request.receipt);  // nothing else is signed
  const WriterLock lock = WriterLock::of_file(flags.request.receipt);
  sign_file(flags.request.receipt, flags.sign);
  const std::string path = signature_of(flags.request.receipt).string();
  print_result(common, {{"signature", path}}, path + "\n");
  return 0;
}

int64_t scored_targets(const Scoring& scoring) { return static_cast<int64_t>(scoring.stream.size()) - 1; }

// Targets that the tests run on: a few windows, or as many as --tokens says.
int64_t slice_of(const AuditRequest& request, const Scoring& scoring) {
  const int64_t targets = scored_targets(scoring);
  const ScoreRecipe& score = scoring.settings.score;
  const int64_t windows = score.mode.base == ScoreMode::lora_ttt ? kSliceWindowsOfAdapters : kSliceWindows;
  return request.score.tokens > 0 ? targets : std::min(targets, windows * score.context);
}

// The beginning of the stream. Adapters see nothing but documents: the part that has most of them, which also go through the
// fewest chunks one after the other.
std::span<const uint16_t> slice_tokens(const AuditRequest& request, const Scoring& scoring) {
  const auto length = slice_of(request, scoring) + 1;
  const std::span<const uint16_t> stream = scoring.stream, first = stream.first(static_cast<size_t>(length));
  if (scoring.settings.score.mode.base != ScoreMode::lora_ttt) return first;
  const DocumentPart part = most_documents(stream, length, scoring.source.recipe.model.bos);
  return part.documents < kLeastDocuments ? first : stream.subspan(static_cast<size_t>(part.begin), first.size());
}

// Of scoring the whole stream: as the receipt's ranks measured it, else estimated here.
void add_score_seconds(AuditBudgets& budgets, const ordered_json& receipt, const AuditInput& input, const Scoring& scoring) {
  budgets.score_tokens = scored_targets(scoring);
  if (!receipt.is_null() && receipt.at("score").at("tokens") == budgets.score_tokens) {
    budgets.score_seconds = receipt.at("score").at("seconds");
    budgets.score_ranks = receipt.at("machine").at("ranks");
    return;
  }
  budgets.score_seconds = make_evaluator(input.model, scoring.settings, input.context)->estimate(budgets.score_tokens);
}

AuditReport run_tests(const Compute& compute, const AuditRequest& request, const Scoring& scoring, Machine& machine,
                      const ordered_json& receipt) {
  AuditInput input;
  const std::span<const uint16_t> slice = slice_tokens(request, scoring);
  input.model = scoring.model();
  input.settings = settings_for_slice(scoring.settings, slice, scoring.source.recipe.model.bos, machine.executor->on_device());
  input.stream.assign(slice.begin(), slice.end());
  input.text = scoring.held_out.tokens;
  input.context = {machine.executor.get(), &machine.queue.pool()};
  input.make_executor = [&](Queue& queue) { return make_executor(parse_backend(compute.backend), queue); };
  input.records_alone = [&](std::span<const uint16_t> stream) {
    return records_alone(compute, scoring, input.settings, stream, request.score.data);
  };
  input.budgets = {.artifact_bytes = scoring.source.file.bytes,
                   .code_bytes = static_cast<uint64_t>(code_bytes()),
                   .train_seconds = trained_seconds(scoring.source.file.path.parent_path()),
                   .calibration_seconds = counted_calibration_beside(scoring.source.file.path)};
  add_score_seconds(input.budgets, receipt, input, scoring);
  const SharedTexts texts = shared_texts(scoring.source.file.path.parent_path(), scoring.text);
  input.texts = {texts.shared, texts.detail};
  input.probes = request.probes;
  input.controls = request.controls;
  ProgressLine line(compute.quiet);
  return audit(input, [&](const std::string& what) {
    if (line.due()) line.show("audit: " + what);
  });
}

int run_audit(const CommonFlags& common, const AuditFlags& flags) {
  if (!flags.verify.empty()) return verify(common, flags);
  if (!flags.signers.empty()) throw InputError("--signers: says who may have signed the receipt of --verify; give that too");
  if (!flags.sign.empty() && flags.request.receipt.empty()) throw InputError("--sign: give the receipt to sign with --receipt");
  if (!flags.sign.empty() && flags.score->from.empty()) return sign(common, flags);
  if (flags.score->from.empty()) throw InputError("audit: give FILE, or --verify RECEIPT");
  AuditRequest request = flags.request;
  request.score = *flags.score;
  require_model(request.score.from);
  remember_scoring(request.score);
  request.score.data = data_for(request.score.from, request.score.data);
  request.score.tokenizer = named_tokenizer(request.score.from, request.score.tokenizer);
  request.controls = !flags.no_controls;
  const pipeline::Outcome outcome = do_audit(request, common);
  if (!flags.sign.empty()) sign_file(request.receipt, flags.sign);
  print_result(common, outcome.result, outcome.text);
  return outcome.status;
}

}  // namespace

pipeline::Outcome do_audit(const pipeline::AuditRequest& request, const Compute& compute) {
  ordered_json receipt;
  std::optional<WriterLock> lock;
  if (!request.receipt.empty()) {
    receipt = read_receipt(request.receipt);  // first: a name that is none gets no lock beside it
    lock.emplace(WriterLock::of_file(request.receipt));
    receipt = read_receipt(request.receipt);
  }
  const std::unique_ptr<Scoring> scoring = open_scoring(request.score);
  if (!receipt.is_null())
    reading_receipt(request.receipt, [&] { require_receipt_of(receipt, request.receipt, *scoring, request.score); });
  Machine machine(compute);
  const AuditReport report =
      reading_receipt(request.receipt, [&] { return run_tests(compute, request, *scoring, machine, receipt); });
  tell_notes(scoring->held_out.notes, compute.quiet);
  if (!receipt.is_null()) {
    add_tests(receipt, report, slice_of(request, *scoring), launch_facts(compute, 1));
    write_receipt(request.receipt, receipt);
  }
  return {report.legal() ? 0 : 1,
          {{"legal", report.legal()}, {"mode", name_of(scoring->settings.score.mode)}, {"tests", tests_json(report)}},
          table_of(report)};
}

void add_audit(CLI::App& program) {
  auto flags = std::make_shared<AuditFlags>();
  CLI::App* command = add_command(program, "audit", "is a score legal? tests of causality, normalisation, order and budgets",
                                  [flags](const CommonFlags& common) { return run_audit(common, *flags); });
  add_scoring_flags(*command, flags->score, false);
  command->add_option("--probes", flags->request.probes, "random places to change (20 or more: every change at every place)")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command->add_flag("--no-controls", flags->no_controls, "leave out T10, the evaluators that must fail");
  command->add_option("--receipt", flags->request.receipt, "receipt of the score; the test results are added to it");
  command->add_option("--verify", flags->verify, "check that files, numbers, program and tests match a receipt");
  command->add_option("--sign", flags->sign,
                      "private key: sign the receipt of --receipt with ssh-keygen, after the tests if FILE is given");
  command->add_option("--signers", flags->signers,
                      "with --verify: the receipt must be signed by one of this file's keys (lines NAME KEY)");
  command->add_flag("--again", flags->again, "with --verify: score again and compare every record");
}

}  // namespace fairway::app
