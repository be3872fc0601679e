// Any bytes as JSON of a file: a value that can be copied, printed and destroyed, or refused.
#include "base/error.h"
#include "base/json.h"
#include "fuzz/targets.h"

namespace {

template <class Json>
void try_json(std::string_view text) {
  const Json lenient = fairway::parse_json_or_discard<Json>(text, "fuzz");
  const Json copy = fairway::parse_json<Json>(text, "fuzz");
  if (lenient != copy || fairway::parse_json<Json>(copy.dump(), "fuzz").is_discarded()) __builtin_trap();
  fuzz_note.accepted = true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    try_json<nlohmann::json>(text);
    try_json<nlohmann::ordered_json>(text);
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const auto nested = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  return {"",
          "{\"step\": 3, \"loss\": 1.25e-3, \"looped\": false, \"names\": [\"a\", \"\\u00e9\\n\", null, {}]}",
          "{\"phases\": {\"train\": {\"seconds\": 1.5, \"result\": {\"tensors\": [[1, 2], [3, -4]]}}}}",
          nested(10),
          nested(64),
          nested(65),
          nested(100'000),
          "\"" + nested(100) + "\\\"" + nested(100) + "\""};
}
