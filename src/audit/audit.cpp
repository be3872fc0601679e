#include "audit/audit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "audit/checks.h"
#include "audit/leak_statistics.h"
#include "audit/negative_controls.h"
#include "audit/probes.h"
#include "audit/runs.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "score/documents.h"

namespace fairway {

bool AuditReport::legal() const {
  return std::all_of(tests.begin(), tests.end(), [](const TestResult& test) { return test.held; });
}

std::string records_hash(const ScoreLedger& ledger, int64_t targets) {
  Sha256 hash;
  for (int64_t target = 1; target <= targets; ++target) {
    const float nll = ledger.nll(target);
    const uint64_t digest = ledger.digest(target);
    const int32_t version = ledger.version(target);
    hash.update(&nll, sizeof nll);
    hash.update(&digest, sizeof digest);
    hash.update(&version, sizeof version);
  }
  return hash.hex();
}

ScoreSettings settings_for_slice(const ScoreSettings& settings, std::span<const uint16_t> slice, int64_t bos, bool on_device) {
  ScoreSettings out = settings;
  ScoreRecipe& score = out.score;
  const auto targets = static_cast<int64_t>(slice.size()) - 1;
  const int64_t length = score.context, fits = std::max(length, targets / 4 / length * length);
  score.ttt.chunk = std::min(score.ttt.chunk, fits);
  LoraRecipe& lora = score.lora;
  // T7's process has what memory this one leaves: 25 GB of activations each, of a model with 17 passes of width 512.
  constexpr int64_t kTokensOnDevice = 49152, kTokensOnCpu = 4096;
  const int64_t batch = std::max<int64_t>(1, (on_device ? kTokensOnDevice : kTokensOnCpu) / length);
  lora.batch = lora.batch > 0 ? std::min(lora.batch, batch) : batch;
  const auto documents = static_cast<int64_t>(document_ranges(slice, bos).size());
  lora.phase_documents = std::clamp<int64_t>(2 * documents / 3, 1, lora.phase_documents);
  lora.phases = std::min(lora.phases, lora.phase_documents);
  lora.phase_chunk = std::min(lora.phase_chunk, length);
  constexpr int64_t kSliceTableBits = 16;
  score.ngram.table_bits = std::min(score.ngram.table_bits, kSliceTableBits);
  out.schedule_targets = targets;
  return out;
}

namespace {

class Audit {
 public:
  Audit(const AuditInput& input, const AuditProgress& progress)
      : input_(input), progress_(progress), runs_(input), truth_(runs_.run(input.stream, captured())) {}

  AuditReport run() {
    note("T1", "every target is scored exactly once", check_coverage(truth_), fmt::format("{} targets", truth_.targets()));
    future();
    target();
    note("T4", "distributions are normalised", check_normalisation(truth_),
         fmt::format("{} distributions", truth_.captures().size()));
    note("T5", "scores come before updates", check_update_order(truth_), fmt::format("{} events", truth_.events().size()));
    note("T6", "single pass", check_single_pass(truth_), "one SCORE for each target");
    isolation();
    truncation();
    invariance();
    if (input_.controls) controls();
    budgets();
    texts();
    return std::move(report_);
  }

 private:
  void say(const std::string& what) const {
    if (progress_) progress_(what);
  }
  void note(const std::string& id, const std::string& property, const Finding& wrong, const std::string& held_detail) {
    const double now = seconds_now();
    report_.tests.push_back({id, property, !wrong, wrong ? *wrong : held_detail, now - begun_});
    begun_ = now;
    say(id);
  }

  std::vector<int64_t> captured() const {
    constexpr int64_t kCaptures = 32;
    const auto targets = static_cast<int64_t>(input_.stream.size()) - 1;
    std::vector<int64_t> out;
    for (int64_t i = 0; i < kCaptures; ++i) out.push_back(1 + targets * i / kCaptures);
    return out;
  }

  void future() {
    const std::vector<Cut> cuts = cut_positions(input_.stream, input_.model, input_.settings, input_.probes, input_.seed);
    const int64_t each = input_.probes >= kThorough ? kMutations : 2;
    Finding wrong;
    int64_t count = 0;
    for (size_t i = 0; i < cuts.size() && !wrong; ++i) {
      for (int64_t k = 0; k < each && !wrong; ++k, ++count) {
        const auto mutation = static_cast<Mutation>((static_cast<int64_t>(i) * 2 + k) % kMutations);
        wrong = runs_.future_dependence(truth_, cuts[i].target, mutation);
        if (wrong)
          wrong = fmt::format("cut at {} ({}), {}: {}", cuts[i].target, cuts[i].what, name_of_mutation(mutation), *wrong);
        say(fmt::format("T2 {}/{}", i + 1, cuts.size()));
      }
    }
    constexpr int64_t kLeakCuts = 48;
    if (wrong)
      *wrong += "; " + sentence_of(estimate_leak(runs_, truth_, input_.settings.score.context, kLeakCuts, input_.seed));
    std::string detail = fmt::format("{} changed streams at {} cuts", count, cuts.size());
    if (!wrong && input_.settings.score.mode.base == ScoreMode::ttt) wrong = liveness(detail);
    if (!wrong && input_.settings.score.mode.base == ScoreMode::lora_ttt && input_.settings.score.lora.phases > 0)
      wrong = phase_liveness(detail);
    note("T2", "no score depends on later tokens", wrong, detail);
  }

  // Whether a distribution from target `from` on changes with the stream, through what is learned: a tilt reaches later targets
  // too, so the mode runs without it.
  bool reaches(int64_t from, std::span<const uint16_t> changed) {
    ScoreSettings learning = input_.settings;
    learning.score.mode = {learning.score.mode.base};
    AuditRuns runs(input_, learning);
    const ScoreLedger before = runs.run(input_.stream), after = runs.run(changed);
    for (int64_t target = from; target <= before.targets(); ++target)
      if (before.digest(target) != after.digest(target)) return true;
    return false;
  }

  // A token of chunk 0 must reach chunk 1 through the weights, else nothing was learned and T2 says little.
  Finding liveness(std::string& detail) {
    const int64_t chunk = input_.settings.score.ttt.chunk, length = input_.settings.score.context, cut = chunk / 2;
    const std::vector<uint16_t> changed = mutate(input_.stream, cut, Mutation::flip, input_.model.recipe.model, input_.seed);
    if (!reaches(std::max(chunk + 1, cut + length) + 1, changed))
      return fmt::format("no later chunk changed when target {} did: nothing is learned", cut);
    detail += "; a changed token of chunk 0 reaches later chunks through the weights";
    return std::nullopt;
  }

  // Nothing but a phase leads from one document to another: a token of the first chunk that a phase learns must reach the
  // documents after it.
  Finding phase_liveness(std::string& detail) {
    const LoraRecipe& lora = input_.settings.score.lora;
    const std::vector<DocumentRange> documents = document_ranges(input_.stream, input_.model.recipe.model.bos);
    const auto before = static_cast<size_t>(lora.phase_documents);  // the last phase; those before it learn from fewer
    if (documents.size() <= before || documents[before - 1].end - 1 <= lora.phase_chunk) {
      detail += fmt::format("; the slice's {} documents are too short for a phase", documents.size());
      return std::nullopt;
    }
    const std::vector<uint16_t> changed =
        mutate(input_.stream, lora.phase_chunk / 2, Mutation::flip, input_.model.recipe.model, input_.seed);
    if (!reaches(documents[before].first + 1, changed))
      return fmt::format("no document after the first {} changed when target {} did: no phase learned", before,
                         lora.phase_chunk / 2);
    detail += fmt::format("; a changed token reaches document {} through a phase", before + 1);
    return std::nullopt;
  }

  void target() {
    Rng rng(input_.seed, 3);
    Finding wrong;
    int64_t count = 0;
    const int64_t probes = std::max<int64_t>(4, input_.probes);
    for (int64_t i = 0; i < probes && !wrong; ++i) {
      const int64_t at = 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(truth_.targets())));
      for (const uint16_t token : replacements(input_.stream, at, input_.model, input_.seed)) {
        wrong = runs_.target_dependence(truth_, at, token);
        ++count;
        if (wrong) break;
      }
      say(fmt::format("T3 {}/{}", i + 1, probes));
    }
    note("T3", "no distribution depends on its target", wrong, fmt::format("{} replaced targets", count));
  }

  void isolation() {
    Finding wrong;
    try {
      if (input_.records_alone(input_.stream) != records_hash(truth_)) wrong = "without files and network the records differ";
    } catch (const WorkError& error) {
      wrong = error.what();
    }
    note("T7", "nothing but the artifact's bytes is read", wrong, "same records from a fresh process that can open nothing");
  }

  void truncation() {
    Finding wrong;
    const int64_t targets = truth_.targets();
    std::vector<int64_t> lengths;
    for (const int64_t n : {targets / 3, targets / 2, targets - 1})
      if (n >= 1) lengths.push_back(n);
    for (const int64_t n : lengths) {
      if (wrong) break;
      const std::vector<uint16_t> prefix(input_.stream.begin(), input_.stream.begin() + n + 1);
      wrong = check_same_prefix(truth_, runs_.run(prefix), n + 1);
      if (wrong) wrong = fmt::format("the first {} targets alone: {}", n, *wrong);
    }
    note("T8", "a prefix scores as it does in the whole stream", wrong,
         fmt::format("{} prefixes, bit for bit", lengths.size()));
  }

  void invariance() {
    Finding wrong = check_same_prefix(truth_, runs_.run(input_.stream), truth_.targets() + 1);
    if (wrong) wrong = "a second run of the same: " + *wrong;
    std::string detail = "repeated, ";
    const bool together = is_legal(input_.settings) && !can_share(input_.settings);
    if (!wrong) wrong = together ? by_ranks_together(detail) : otherwise(detail);
    note("T9", "ranks, batches and threads change nothing", wrong, detail);
  }

  // State goes from chunk to chunk or from document to document: ranks work on one stream together, each in its own way.
  Finding by_ranks_together(std::string& detail) {
    for (const ScoreLedger& ledger : runs_.run_together(input_.stream))
      if (const Finding wrong = other_than_truth(ledger)) return "by 2 ranks: " + *wrong;
    detail += "by 2 ranks together, one on 1 thread with 3 windows or documents at once, one on 3 threads with 1: same bits";
    return std::nullopt;
  }

  Finding otherwise(std::string& detail) {
    for (const auto& [threads, batch] : {std::pair{1, 3}, std::pair{3, 1}}) {
      const ScoreLedger ledger = runs_.run_otherwise(input_.stream, threads, batch);
      if (const Finding wrong = check_same_prefix(truth_, ledger, truth_.targets() + 1)) return wrong;
    }
    detail += "on 1 thread with 3 windows or documents at once, on 3 threads with 1";
    if (!can_share(input_.settings)) {
      detail += ": same bits; one rank alone scores it";
      return std::nullopt;
    }
    for (const int ranks : {2, 8})
      if (const Finding wrong = other_than_truth(runs_.run_in_shares(input_.stream, ranks)))
        return fmt::format("shares of {} ranks: {}", ranks, *wrong);
    detail += ", shares of 2 and 8 ranks: same bits";
    return std::nullopt;
  }

  Finding other_than_truth(const ScoreLedger& ledger) const {
    Finding wrong = check_coverage(ledger);
    if (!wrong) wrong = check_update_order(ledger);
    if (!wrong) wrong = check_same_prefix(truth_, ledger, truth_.targets() + 1);
    if (!wrong && records_hash(ledger) != records_hash(truth_)) wrong = "state versions differ";
    return wrong;
  }

  void controls() {
    const ControlReport found = run_negative_controls(input_, progress_);
    note("T10", "every negative control is caught", found.missed.empty() ? Finding{} : Finding{found.missed}, found.caught);
  }

  void budgets() {
    const AuditBudgets& b = input_.budgets;
    std::string detail =
        fmt::format("{} of {} bytes ({} of them code)", b.artifact_bytes + b.code_bytes, kMostArtifactBytes, b.code_bytes);
    bool held = b.artifact_bytes + b.code_bytes <= kMostArtifactBytes;
    const auto seconds = [&](const std::string& what, double value) {
      detail += value < 0 ? fmt::format(", {}: time not known", what)
                          : fmt::format(", {} {:.0f} of {:.0f} s", what, value, kMostSeconds);
      held = held && value <= kMostSeconds;
    };
    const bool calibrated = b.calibration_seconds > 0 && b.train_seconds >= 0;
    seconds(calibrated ? "training and calibration" : "training", b.train_seconds + (calibrated ? b.calibration_seconds : 0));
    seconds(fmt::format("scoring {} tokens ({})", b.score_tokens,
                        b.score_ranks == 0   ? "estimated"
                        : b.score_ranks == 1 ? "measured"
                                             : fmt::format("measured, {} ranks", b.score_ranks)),
            b.score_seconds);
    note("T11", "within the budgets", held ? Finding{} : Finding{detail}, detail);
  }

  void texts() {
    const AuditTexts& texts = input_.texts;
    const bool held = texts.shared.value_or(0) == 0;
    note("T12", "training and validation text are apart", held ? Finding{} : Finding{texts.detail}, texts.detail);
  }

  const AuditInput& input_;
  const AuditProgress& progress_;
  double begun_ = seconds_now();  // when the last test ended
  AuditRuns runs_;
  ScoreLedger truth_;
  AuditReport report_;
};

}  // namespace

AuditReport audit(const AuditInput& input, const AuditProgress& progress) {
  FAIRWAY_ASSERT(input.records_alone, "an audit needs a process to score alone in");
  if (input.stream.size() < 2) throw InputError("the audit needs a stream of two tokens or more");
  return Audit(input, progress).run();
}

}  // namespace fairway
