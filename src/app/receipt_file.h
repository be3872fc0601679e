// The receipt of a score: which bytes were scored by which program in which mode, the result with the sums it comes from, and
// the audit's tests. It carries the SHA-256 of its own text, so that a changed one is noticed; anybody can make that anew, so
// its numbers are never believed but computed again: from its own sums, from score.records beside it, or by scoring again.
#pragma once

#include "app/scoring_flags.h"
#include "audit/audit.h"

namespace fairway::app {

// Writes score.records, score.json and receipt.json into the folder; `machine`: launch_facts() of the ranks that scored.
void write_scored(const std::filesystem::path& folder, const Scoring& scoring, const ScoreRequest& request,
                  const ScoredRun& run, const nlohmann::ordered_json& machine);

nlohmann::ordered_json settings_json(const ScoreRequest& request, const ScoreSettings& settings);

// Where weights, data, recipe or settings are others than the receipt tells (base/identity.h): a sentence each. How many tokens
// is not compared.
std::vector<std::string> other_than_told(const nlohmann::ordered_json& receipt, const Scoring& scoring,
                                         const ScoreRequest& request);
// InputError unless nothing is other than told, and the receipt's numbers are what its sums give.
void require_receipt_of(const nlohmann::ordered_json& receipt, const std::string& path, const Scoring& scoring,
                        const ScoreRequest& request);
void add_tests(nlohmann::ordered_json& receipt, const AuditReport& report, int64_t tokens,
               const nlohmann::ordered_json& machine);
// The request that a receipt's score was made by, for an artifact and data that lie here.
ScoreRequest recorded_request(const nlohmann::ordered_json& receipt, const std::string& from, const std::string& data);
nlohmann::ordered_json tests_json(const AuditReport& report);

void write_receipt(const std::filesystem::path& path, nlohmann::ordered_json receipt);
nlohmann::ordered_json read_receipt(const std::filesystem::path& path);  // InputError when it is none or was changed

}  // namespace fairway::app
