// Runs against runs, document by document of one text: reads their score.records and says what document_bootstrap.h finds.
#pragma once

#include "analysis/compare_runs.h"
#include "analysis/document_bootstrap.h"

namespace fairway {

inline constexpr int64_t kFewDocuments = 30;  // intervals from fewer are rough

struct DocumentComparison {
  DocumentTest test;
  int64_t documents = 0, bytes = 0, draws = 0;
  size_t runs = 0, against = 0;
  std::string name, against_name;  // of a side with one run: its folder; else "the runs", "the baseline"
};

// One run on each side is enough. InputError names what differs unless both sides were scored alike (text, tokenizer, targets,
// mode, context), and files of records that are not those of the scores.
DocumentComparison compare_documents(const SeedScores& runs, SeedScores against, bool paired_seeds, ThreadPool& pool);

nlohmann::ordered_json to_json(const DocumentComparison& comparison);
std::string to_text(const DocumentComparison& comparison);

}  // namespace fairway
