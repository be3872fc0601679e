// Any bytes as a checkpoint of PyTorch: refused, or every tensor can be read. The mutator changes an entry and writes the zip
// around it anew, so that sums and directory are right; one input in four has raw changes.
#include <cstring>

#include "base/error.h"
#include "base/rng.h"
#include "fuzz/published_files.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace fairway::interchange;

std::string mutated(std::string bytes, size_t room) {
  const size_t size = bytes.size();
  bytes.resize(size + room);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
  return bytes;
}

// With one entry changed, left out or twice as long.
std::string changed_zip(const std::string& file, fairway::Rng& rng) {
  try {
    const ZipArchive archive(file, "seed");
    if (archive.entries().empty()) return file;
    ZipWriter writer;
    const uint64_t chosen = rng.below(archive.entries().size());
    uint64_t number = 0;
    for (const auto& [name, entry] : archive.entries()) {
      std::string bytes(archive.read(name, "it"));
      if (number++ == chosen) {
        const uint64_t what = rng.below(8);
        if (what == 0) continue;
        bytes = what == 1 ? bytes + bytes : mutated(bytes, 64);
      }
      writer.add(name, bytes);
    }
    return std::move(writer).finish();
  } catch (const fairway::InputError&) {
    return file;
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  fairway::Rng rng(seed);
  std::string file(reinterpret_cast<const char*>(data), size);
  if (rng.below(4) != 0) file = changed_zip(file, rng);
  if (rng.below(4) == 0) file = mutated(file, 64);
  const size_t used = std::min(file.size(), max_size);
  std::memcpy(data, file.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_note.claim = 600 * size;
  if (size < 4 || std::memcmp(data, "PK\3\4", 4) != 0) return 0;  // fuzz_ptz has the other formats
  try {
    use_all(read_weight_set(std::string(reinterpret_cast<const char*>(data), size), "fuzz"));
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() { return {state_dict(), artifact("w", true)}; }
