// A look at a folder of shards: headers, counts, checksums, token range, texts kept apart, and two pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/document_hashes.h"

namespace fairway::data {

struct InspectOptions {
  bool checksums = true;                // compare with the manifest: reads every byte
  uint64_t sample_tokens = 20'000'000;  // for frequencies, lengths and the token-range check, spread over the shards; 0: all
  bool unicode = true;                  // pictures with block characters, else ASCII
  std::filesystem::path validation;     // text that the validation shards and byte counts are compared with; may be empty
};

struct InspectResult {
  int shards = 0;
  uint64_t tokens = 0;
  std::vector<std::string> problems;
  uint64_t sampled_tokens = 0, sampled_documents = 0;
  uint64_t compared_tokens = 0, compared_byte_counts = 0;  // with the validation text
  std::optional<uint64_t> shuffle;                         // seed of the documents' order, where the manifest has one
  std::optional<SharedDocuments> shared;   // of training and validation text; nothing where the folder has not both
  uint64_t pieces = 0;                     // tokens of the longest piece of a document; 0: they are whole
  std::vector<uint64_t> frequencies;       // by token id, of the sample
  std::vector<uint64_t> document_lengths;  // [k]: documents of 2^k to 2^(k+1) - 1 tokens
  std::string text;                        // table and pictures for a terminal
};

InspectResult inspect(const std::filesystem::path& folder, const InspectOptions& options = {});

}  // namespace fairway::data
