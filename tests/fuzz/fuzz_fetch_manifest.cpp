// Any bytes as a list of files to fetch: names that stay in their folder and paths that stay below a mirror, or refused.
#include "base/error.h"
#include "base/file.h"
#include "fetch/fetch_manifest.h"
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto manifest = fairway::fetch::parse_fetch_manifest({reinterpret_cast<const char*>(data), size}, "fuzz");
    for (const auto& set : manifest.sets)
      for (const auto& file : set.files)
        if (!fairway::is_bare_name(file.name) || ("/" + file.path + "/").find("/../") != std::string::npos ||
            file.sha256.size() != 64 || file.bytes == 0)
          __builtin_trap();
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string file = R"({"name": "a.bin", "path": "x/a.bin", "bytes": 12, "sha256": ")" + std::string(64, '0') + "\"}";
  return {"", "{}", R"({"fetch": 1, "mirrors": ["http://m/"], "sets": {"s": {"files": [)" + file + "]}}}",
          R"({"fetch": 1, "sets": {"s": {"mirrors": ["https://m"], "files": [)" + file + "]}, \"t\": {\"files\": []}}}"};
}
