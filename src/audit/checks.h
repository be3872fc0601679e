// Checks on one run's records and on pairs of runs (scoring spec §3.2). Each returns what it found wrong, or nothing.
#pragma once

#include <optional>
#include <string>

#include "score/ledger.h"

namespace fairway {

using Finding = std::optional<std::string>;

Finding check_coverage(const ScoreLedger& ledger);       // T1: every target exactly once
Finding check_normalisation(const ScoreLedger& ledger);  // T4: on the captured distributions
Finding check_update_order(const ScoreLedger& ledger);   // T5: replay of the events
Finding check_single_pass(const ScoreLedger& ledger);    // T6: one SCORE for each target, no broken rule
// T2, T8: the first `end` − 1 targets of both runs have the same bits.
Finding check_same_prefix(const ScoreLedger& truth, const ScoreLedger& other, int64_t end);
// T3: the distribution at the target has the same bits, though its token differs.
Finding check_same_distribution(const ScoreLedger& truth, const ScoreLedger& other, int64_t target);

}  // namespace fairway
