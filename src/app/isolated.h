// T7 of the audit: this program, started anew with everything it may read, scores a stream where it can open nothing.
#pragma once

#include "app/scoring_flags.h"

namespace fairway::app {

// The hash of the records that such a process makes of the stream (audit/audit.h). WorkError when it fails there, or could open
// a file after all.
std::string records_alone(const Compute& compute, const Scoring& scoring, const ScoreSettings& settings,
                          std::span<const uint16_t> stream, const std::filesystem::path& data);

// The command that such a process runs; no user's, so help does not list it.
void add_isolated(CLI::App& program);

}  // namespace fairway::app
