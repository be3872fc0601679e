// score.records, beside a receipt: what a score was summed from, so that its numbers can be computed again without scoring, and
// documents compared one by one. "FWSR", version 2 (u32), the number of targets T (u64), the nats of each target in the order
// of the stream (f32), the number of documents D (u64), then of each document its targets and its bytes (u64 each), all little
// endian: 24 + 4·T + 16·D bytes, 249 MB for the 62 million targets of sp1024's FineWeb. Version 1 ended after the nats. Digests
// stay out; the receipt has their hash.
#pragma once

#include <filesystem>

#include "base/file_identity.h"
#include "score/metric.h"

namespace fairway {

inline constexpr const char* kRecordsName = "score.records";

// A document as scoring knows it (score/documents.h): the targets behind its start token, through the next start token.
struct DocumentSize {
  int64_t targets = 0, bytes = 0;
  bool operator==(const DocumentSize&) const = default;
};
std::vector<DocumentSize> document_sizes(std::span<const uint16_t> stream, const TargetBytes& bytes, int64_t bos);

struct ScoreRecords {
  FileIdentity file;
  int64_t targets = 0;
  std::vector<double> nats;  // of each block of kScoreBlock targets
  std::vector<DocumentSize> documents;
  std::vector<double> document_nats;  // of each document; both are empty in files of version 1
};

FileIdentity write_score_records(const std::filesystem::path& path, const ScoreLedger& ledger,
                                 std::span<const DocumentSize> documents);
// Reads a block at a time and sums it. InputError for a file that is none, is cut short or holds what is no number.
ScoreRecords read_score_records(const std::filesystem::path& path);

}  // namespace fairway
