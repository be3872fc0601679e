// manifest.json beside the shards: what was written, from what, with which tokenizer, and the checksum of each file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/shard.h"
#include "tokenizer/vocabulary.h"

namespace fairway::data {

struct ManifestShard {
  std::string name;
  uint64_t tokens = 0;
  std::string sha256;
};

// The file of the training documents' hashes (document_hashes.h).
struct ManifestHashes {
  std::string name;
  uint64_t count = 0;
  std::string sha256;
};

struct Manifest {
  std::string tokenizer_sha256;    // of its file
  std::string tokenizer_identity;  // what it means; empty in manifests of earlier versions
  int vocab = 0;
  uint64_t documents = 0, bytes = 0;          // of the training text: UTF-8 as read
  uint64_t val_documents = 0, val_bytes = 0;  // of the validation text
  bool case_ops = false;
  std::optional<uint64_t> shuffle;       // seed of the order of the training documents; nothing: the text's own order
  uint64_t pieces = 0;                   // training documents were cut into pieces of at most so many tokens; 0: they are whole
  std::optional<ManifestHashes> hashes;  // nothing in manifests of earlier versions
  std::vector<ManifestShard> shards;

  std::vector<std::string> tokenizer_names() const { return {tokenizer_identity, tokenizer_sha256}; }
};

// The file that `data tokenize` works on; while it is there, shards of its kind are missing or about to be replaced.
std::filesystem::path unfinished_mark(const std::filesystem::path& folder, std::string_view kind);
void require_finished(const std::filesystem::path& folder);  // InputError for a folder with one

std::optional<Manifest> read_manifest(
    const std::filesystem::path& folder);  // nothing when there is none; InputError when broken
Manifest parse_manifest(const std::string& text, const std::string& name);
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

// InputError when a shard's count differs from the manifest's: cheap, so done whenever shards are opened.
void check_counts(const Manifest& manifest, const std::filesystem::path& folder, const ShardSet& set);
// InputError when the manifest lists one of the files with other bytes than were read.
void check_bytes(const Manifest& manifest, const std::filesystem::path& folder, const std::vector<FileIdentity>& read);

}  // namespace fairway::data
