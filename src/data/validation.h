// The only door to held-out tokens. tests/layering lets nothing but src/stages (and this folder) include it, and ShardSet
// refuses the names of validation shards, so that training and quantizing cannot read them.
#pragma once

#include <optional>

#include "data/shard.h"

namespace fairway::data {

struct HeldOutTokens {
  std::vector<uint16_t> tokens;
  std::vector<uint16_t> byte_counts;  // of each token, by `fineweb_val_bytes_*.bin` (scoring spec §1.7); empty without them
  std::vector<FileIdentity> shards, byte_count_files;
};

class Validation {
 public:
  // `fineweb_val_*.bin` without the byte counts, in lexicographic order; as ShardSet::open_train otherwise.
  static ShardSet open(const std::filesystem::path& folder);
  // `fineweb_val_bytes_*.bin`; nothing when the folder has none.
  static std::optional<ShardSet> open_byte_counts(const std::filesystem::path& folder);
  // All of it as it was read. InputError where the folder's manifest lists a file with another SHA-256.
  static HeldOutTokens read(const std::filesystem::path& folder);
};

}  // namespace fairway::data
