// Any bytes as a shard: opened, read and searched, or refused.
#include <cstring>

#include "base/error.h"
#include "data/shard.h"
#include "fuzz/memory_file.h"
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  try {
    const auto shards = fairway::data::ShardSet::open({file.path()});
    shards.read_all();
    shards[0].find(1, 0);
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const int32_t tokens : {0, 1, 5, 3000}) {
    const int32_t header[3] = {fairway::data::kShardMagic, fairway::data::kShardVersion, tokens};
    std::string bytes(fairway::data::kShardHeaderBytes + 2 * static_cast<size_t>(tokens), '\1');
    std::memcpy(bytes.data(), header, sizeof header);
    seeds.push_back(std::move(bytes));
  }
  return seeds;
}
