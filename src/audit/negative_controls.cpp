#include "audit/negative_controls.h"

#include <fmt/core.h>

#include <algorithm>

#include "audit/broken_mask.h"
#include "audit/probes.h"
#include "audit/runs.h"
#include "base/rng.h"
#include "score/documents.h"

namespace fairway {
namespace {

constexpr int64_t kTries = 48;  // changed streams, after which a control has slipped through

// Cuts inside the scored part of windows, where a leak shows at once.
Finding find_future_leak(AuditRuns& runs, const ScoreLedger& truth, int64_t context, uint64_t seed) {
  Rng rng(seed, 10);
  for (int64_t i = 0; i < kTries; ++i) {
    const int64_t first = i % 4 < 2 ? std::min(context, truth.targets() - 1) : 1;  // every other pair after the first window
    const int64_t cut = first + 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(truth.targets() - first)));
    if (Finding found = runs.future_dependence(truth, cut, i % 2 == 0 ? Mutation::random : Mutation::deleted)) return found;
  }
  return std::nullopt;
}

// Targets whose distribution is not that of honest windows: where the control did something, and so where it may leak.
std::vector<int64_t> touched_targets(const AuditInput& input, const ScoreLedger& truth) {
  ScoreSettings honest = input.settings;
  honest.score.mode = {ScoreMode::sliding};
  honest.control = NegativeControl::none;
  AuditRuns runs(input, honest);
  const ScoreLedger ledger = runs.run(input.stream);
  std::vector<int64_t> out;
  for (int64_t target = 1; target <= truth.targets(); ++target)
    if (truth.digest(target) != ledger.digest(target)) out.push_back(target);
  return out;
}

Finding find_target_leak(const AuditInput& input, AuditRuns& runs, const ScoreLedger& truth) {
  const std::vector<int64_t> touched = touched_targets(input, truth);
  Rng rng(input.seed, 11);
  for (int64_t i = 0; i < kTries && !touched.empty();) {
    const int64_t target = touched[rng.below(touched.size())];
    for (const uint16_t token : replacements(input.stream, target, input.model, input.seed)) {
      if (Finding found = runs.target_dependence(truth, target, token)) return found;
      ++i;
    }
  }
  return std::nullopt;
}

int64_t documents_of(std::span<const uint16_t> stream, int64_t bos) {
  return static_cast<int64_t>(document_ranges(stream, bos).size());
}

// The part of the text, as long as the stream and beginning with a document, that holds most documents; where none holds
// enough, a copy of the stream into which starts are put at uneven distances.
ControlText text_with_documents(const AuditInput& input, std::vector<uint16_t> stream) {
  const int64_t bos = input.model.recipe.model.bos;
  if (documents_of(stream, bos) >= kLeastDocuments) return {std::move(stream), ""};
  const auto length = static_cast<int64_t>(stream.size());
  if (const DocumentPart part = most_documents(input.text, length, bos); part.documents >= kLeastDocuments) {
    const auto begin = input.text.begin() + part.begin;
    return {{begin, begin + length}, fmt::format("on {} documents from token {} on", part.documents, part.begin)};
  }
  constexpr int64_t kDocuments = 12;
  std::vector<uint16_t> out = std::move(stream);
  const int64_t mean = std::max<int64_t>(1, length / kDocuments);
  int64_t at = 0;
  for (int64_t k = 0; at < length; ++k) {
    out[static_cast<size_t>(at)] = static_cast<uint16_t>(bos);
    at += 1 + mean / 2 + mean * (k % 5) / 4;
  }
  return {std::move(out), "on a copy with added document starts, because the text has too few documents"};
}

}  // namespace

ControlText control_text(const AuditInput& input, const ControlCase& control) {
  const ScoreRecipe& score = control_settings(input, control).score;
  const auto length = std::min(input.stream.size(), static_cast<size_t>(score.context + control.windows * score.stride) + 1);
  std::vector<uint16_t> stream(input.stream.begin(), input.stream.begin() + static_cast<int64_t>(length));
  if (control.control == NegativeControl::lora_length_sorted) return text_with_documents(input, std::move(stream));
  return {std::move(stream), ""};
}

ScoreSettings control_settings(const AuditInput& input, const ControlCase& control) {
  constexpr int64_t kLeastOverlap = 8;            // strides in a context
  constexpr int64_t kLongestDocumentChunk = 256;  // fewer, larger steps of the adapters: the order is what leaks
  ScoreSettings settings = input.settings;
  ScoreRecipe& score = settings.score;
  settings.control = control.control;
  score.mode = {control.mode};
  score.windows = 0;
  score.stride = std::clamp<int64_t>(score.context / kLeastOverlap, 1, std::max<int64_t>(1, score.stride));
  score.ttt.chunk = std::min(score.ttt.chunk, score.context);
  score.lora.chunk = std::max(score.lora.chunk, std::min(kLongestDocumentChunk, score.context / kLeastOverlap));
  score.lora.phases = 1;  // the longer half of the documents first, then all weights learn from them
  if (control.control == NegativeControl::lora_length_sorted) {
    score.lora.order = LoraOrder::compat;
    score.lora.batch = 1;  // a slice's few documents would be one batch of the published size, scored before anything leaks
  }
  return settings;
}

std::vector<ControlCase> control_cases() {
  return {{"slot-published", ScoreMode::slot_published, NegativeControl::none, "T2"},
          {"slot with a context shared by a batch", ScoreMode::slot, NegativeControl::slot_shared_context, "T2"},
          {"ngram-published", ScoreMode::ngram_published, NegativeControl::none, "T3"},
          {"ttt that trains first", ScoreMode::ttt, NegativeControl::ttt_train_first, "T5"},
          {"phased lora-ttt, longest documents first", ScoreMode::lora_ttt, NegativeControl::lora_length_sorted, "T2"},
          {"causal mask off by one", ScoreMode::sliding, NegativeControl::broken_mask, "T3", 1},
          {"tail windows counted again", ScoreMode::sliding, NegativeControl::double_count, "T1"}};
}

Finding catch_control(const AuditInput& audited, const ControlCase& control) {
  AuditInput honest = audited;
  honest.stream = control_text(audited, control).stream;
  honest.settings = control_settings(audited, control);
  honest.settings.score.lora.phase_documents =
      std::max<int64_t>(1, documents_of(honest.stream, honest.model.recipe.model.bos) / 2);
  AuditInput input = honest;
  BrokenMaskExecutor broken(*honest.context.executor);
  if (control.control == NegativeControl::broken_mask) input.context.executor = &broken;
  AuditRuns runs(input);
  const ScoreLedger truth = runs.run(input.stream);
  if (control.test == "T1") return check_coverage(truth);
  if (control.test == "T5") return check_update_order(truth);
  return control.test == "T2" ? find_future_leak(runs, truth, input.settings.score.context, input.seed)
                              : find_target_leak(honest, runs, truth);
}

ControlReport run_negative_controls(const AuditInput& input, const AuditProgress& progress) {
  ControlReport report;
  for (const ControlCase& control : control_cases()) {
    const bool caught = catch_control(input, control).has_value();
    const std::string note = control_text(input, control).note;
    std::string& list = caught ? report.caught : report.missed;
    list += (list.empty() ? "" : ", ") + control.name + (note.empty() ? "" : " (" + note + ")") +
            (caught ? " by " : " not by ") + control.test;
    if (progress) progress("T10 " + control.name);
  }
  return report;
}

}  // namespace fairway
