// Any bytes as a shard: opened, read and searched, or refused.
#include "base/error.h"
#include "data/shard.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  try {
    const auto shards = fairway::data::ShardSet::open({file.path()});
    shards.read_all();
    shards[0].find(1, 0);
  } catch (const fairway::InputError&) {}
  return 0;
}
