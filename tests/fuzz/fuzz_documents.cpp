// Any bytes as a text file: plain, compressed, JSON lines, or refused.
#include "base/error.h"
#include "data/documents.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  try {
    fairway::data::DocumentReader reader(file.path());
    int records = 0;
    for (fairway::data::Record record; records < 100 && reader.next(record); ++records) reader.decode(record);
  } catch (const fairway::InputError&) {}
  return 0;
}
