// score.records, beside a receipt: what a score was summed from, so that its numbers can be computed again without scoring.
// "FWSR", version 1 (u32), the number of targets T (u64), then the nats of each target in the order of the stream (f32, little
// endian): 16 + 4·T bytes, 248 MB for the 62 million targets of sp1024's FineWeb. Digests stay out; the receipt has their hash.
#pragma once

#include <filesystem>

#include "base/file_identity.h"
#include "score/metric.h"

namespace fairway {

inline constexpr const char* kRecordsName = "score.records";

struct ScoreRecords {
  FileIdentity file;
  int64_t targets = 0;
  std::vector<double> nats;  // of each block of kScoreBlock targets
};

FileIdentity write_score_records(const std::filesystem::path& path, const ScoreLedger& ledger);
// Reads a block at a time and sums it. InputError for a file that is none, is cut short or holds what is no number.
ScoreRecords read_score_records(const std::filesystem::path& path);

}  // namespace fairway
