// Any bytes as a text file: plain, compressed, JSON lines, or refused.
#include "base/error.h"
#include "data/compress.h"
#include "data/documents.h"
#include "fuzz/memory_file.h"
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  fuzz_note.claim = uint64_t{512} << 20;  // windows that a compressed file may ask its decoder for
  try {
    fairway::data::DocumentReader reader(file.path());
    int records = 0;
    for (fairway::data::Record record; records < 100 && reader.next(record); ++records) reader.decode(record);
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string json =
      "{\"text\": \"one \\u00e9\\n\\\"\"}\n\n {\"id\": [1, {\"a\": null}], \"text\": \"tw\xC3\xB6\"}\r\n{\"text\": \"\"}\n";
  const std::string plain = "one\n\n\ntwo\fthree\n%\nfour \xE6\xB0\xB4\r\n\r\n\r\nfive";
  return {"",
          json,
          plain,
          "\xEF\xBB\xBF" + json,
          gzip("\xEF\xBB\xBF" + plain),
          std::string("\xFF\xFE{\0", 4),
          gzip(json),
          gzip(plain) + gzip(json),
          xz(json),
          xz(plain),
          zstd(json),
          zstd(plain) + zstd(json)};
}
