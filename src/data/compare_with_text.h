// Validation shards and their byte counts against the text they were made from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace fairway::data {

struct TextComparison {
  uint64_t documents = 0, tokens = 0;   // compared
  uint64_t byte_counts = 0, bytes = 0;  // compared, and their sum; none without fineweb_val_bytes_*.bin
  std::vector<std::string> problems;
};

// Encodes the text again, document by document. Tokens that differ end the comparison: what follows is shifted. Byte counts are
// held to the rule they are written by (document_encoder.h); the first few that differ are named, the rest is counted.
TextComparison compare_with_text(const std::filesystem::path& folder, const Tokenizer& tokenizer, bool case_ops,
                                 const std::filesystem::path& text);

}  // namespace fairway::data
