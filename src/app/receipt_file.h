// The receipt of a score: which bytes were scored by which program in which mode, the result, and the audit's tests. It carries
// the SHA-256 of its own text, so that a changed one is noticed.
#pragma once

#include "app/scoring.h"
#include "audit/audit.h"

namespace fairway::app {

nlohmann::ordered_json make_receipt(const Scoring& scoring, const ScoringFlags& flags, const ScoredRun& run);
// InputError unless the receipt is of these bytes, scored under these settings; how many tokens is not compared.
void require_receipt_of(const nlohmann::ordered_json& receipt, const std::string& path, const Scoring& scoring,
                        const ScoringFlags& flags);
void add_tests(nlohmann::ordered_json& receipt, const AuditReport& report, int64_t tokens);
nlohmann::ordered_json tests_json(const AuditReport& report);

void write_receipt(const std::filesystem::path& path, nlohmann::ordered_json receipt);
nlohmann::ordered_json read_receipt(const std::filesystem::path& path);  // InputError when it is none or was changed

// What no longer is as the receipt says: sentences, none when all holds. With `again`, the score is computed anew too.
std::vector<std::string> verify_receipt(const nlohmann::ordered_json& receipt, const CommonFlags& common, bool again);

}  // namespace fairway::app
