// The legality tests T1 … T11 (scoring spec §3.2) on one evaluator: runs it on a slice and on changed copies of the slice and
// compares records bit for bit. T12 is about the texts: no training document is in the validation text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "score/evaluator.h"

namespace fairway {

struct TestResult {
  std::string id, property;
  bool held = false;
  std::string detail;
  double seconds = 0;  // that the test took
};

struct AuditBudgets {
  uint64_t artifact_bytes = 0, code_bytes = 0;  // both count (scoring spec §6.1)
  double train_seconds = -1;                    // unknown
  double calibration_seconds = 0;               // that count as training: of calibration on training data
  double score_seconds = -1;                    // of so many tokens …
  int64_t score_tokens = 0;
  int64_t score_ranks = 0;  // … as measured by so many ranks; 0: estimated from a few windows on this machine
};
inline constexpr uint64_t kMostArtifactBytes = 16'000'000;
inline constexpr double kMostSeconds = 600;

// What training text and validation text share.
struct AuditTexts {
  std::optional<uint64_t> shared;  // documents; nothing: not known
  std::string detail = "not known";
};

struct AuditInput {
  ScoredModel model;
  ScoreSettings settings;
  std::vector<uint16_t> stream;    // the slice
  std::span<const uint16_t> text;  // what the slice was cut from; T10 looks in it for documents
  ScoreContext context;
  std::function<std::unique_ptr<Executor>(Queue&)> make_executor;  // for runs on other numbers of threads
  // T7: records_hash() of the stream's records, made by a process that can open nothing (isolation.h).
  std::function<std::string(std::span<const uint16_t> stream)> records_alone;
  AuditBudgets budgets;
  AuditTexts texts;
  int64_t probes = 8;    // random cuts; from 20 on every change is tried at every cut
  bool controls = true;  // T10: negative controls must fail
  uint64_t seed = 1;
};

struct AuditReport {
  std::vector<TestResult> tests;
  bool legal() const;
};

using AuditProgress = std::function<void(const std::string& what)>;
AuditReport audit(const AuditInput& input, const AuditProgress& progress = {});

// Settings under which a slice exercises every part of the mode: chunks that fit several times, phases that end after two
// thirds of its documents, small tables. On a device more documents are scored at once.
ScoreSettings settings_for_slice(const ScoreSettings& settings, std::span<const uint16_t> slice, int64_t bos, bool on_device);

// SHA-256 over every target's NLL, digest and state version: equal where two runs are equal bit for bit.
std::string records_hash(const ScoreLedger& ledger, int64_t targets);  // of the first so many
inline std::string records_hash(const ScoreLedger& ledger) { return records_hash(ledger, ledger.targets()); }

}  // namespace fairway
