// Any bytes as a file of documents' hashes: read to its end in rising order, or refused.
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "data/document_hashes.h"
#include "fuzz/memory_file.h"
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  try {
    uint64_t before = 0, count = 0;
    const auto read = fairway::data::read_hash_file(file.path(), [&](uint64_t hash) {
      if (hash < before) std::abort();
      before = hash;
      ++count;
    });
    if (count != read.count || 16 + 8 * count != size) std::abort();
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const uint64_t count : {0, 1, 5, 3000}) {
    std::vector<uint64_t> words{fairway::data::kHashFileMagic, count};
    for (uint64_t i = 0; i < count; ++i) words.push_back(i * 0x0001234567890123);
    std::string bytes(8 * words.size(), '\0');
    std::memcpy(bytes.data(), words.data(), bytes.size());
    seeds.push_back(std::move(bytes));
  }
  return seeds;
}
