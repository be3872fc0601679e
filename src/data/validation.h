// The only door to held-out tokens. tests/layering lets nothing but src/app (and this folder) include it, and ShardSet refuses
// the names of validation shards, so that training and quantizing cannot read them.
#pragma once

#include "data/shard.h"

namespace fairway::data {

class Validation {
 public:
  // `fineweb_val_*.bin` without the byte counts, in lexicographic order; as ShardSet::open_train otherwise.
  static ShardSet open(const std::filesystem::path& folder);
  // `fineweb_val_bytes_*.bin` (scoring spec §1.7): the bytes of each token; empty where there are none.
  static std::vector<uint16_t> byte_counts(const std::filesystem::path& folder);
};

}  // namespace fairway::data
