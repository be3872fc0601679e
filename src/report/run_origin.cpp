#include "report/run_origin.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "report/last_record.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr uint64_t kMostOriginBytes = uint64_t{1} << 24;

std::string word(const ordered_json& object, const char* key, const fs::path& path) {
  if (!object.contains(key) || !object[key].is_string())
    throw InputError(path.string() + ": has no text \"" + key + "\"; it is not what `fairway train` wrote");
  return object[key].get<std::string>();
}

}  // namespace

std::optional<RunOrigin> read_origin(const fs::path& folder) {
  const fs::path path = folder / kOriginFile;
  if (!fs::is_regular_file(path)) return std::nullopt;
  const ordered_json stored = parse_json_or_discard<ordered_json>(read_file(path, kMostOriginBytes), path.string());
  if (!stored.is_object()) throw InputError(path.string() + ": is not a JSON object");
  RunOrigin origin{.data = word(stored, "data", path), .relative = word(stored, "relative", path)};
  if (stored.contains("tokenizer")) origin.tokenizer = word(stored, "tokenizer", path);
  if (stored.contains("launches") && stored["launches"].is_array()) origin.launches = stored["launches"];
  if (stored.contains("from")) {
    const ordered_json& from = stored["from"];
    if (!from.is_object()) throw InputError(path.string() + ": \"from\" is not a JSON object");
    origin.from = {.path = word(from, "path", path), .sha256 = word(from, "sha256", path)};
    if (from.contains("train_seconds") && from["train_seconds"].is_number())
      origin.from->train_seconds = from["train_seconds"].get<double>();
  }
  return origin;
}

std::string origin_text(const RunOrigin& origin) {
  ordered_json out{{"data", origin.data}, {"relative", origin.relative}};
  if (!origin.tokenizer.empty()) out["tokenizer"] = origin.tokenizer;
  if (origin.from) {
    out["from"] = {{"path", origin.from->path}, {"sha256", origin.from->sha256}};
    out["from"]["train_seconds"] = origin.from->train_seconds < 0 ? ordered_json() : ordered_json(origin.from->train_seconds);
  }
  out["launches"] = origin.launches;
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

double trained_seconds(const fs::path& folder) {
  const ordered_json last = last_record_with(folder / "timing.jsonl", "train_seconds");
  if (!last.is_object() || !last["train_seconds"].is_number()) return -1;
  const double own = last["train_seconds"].get<double>();
  const std::optional<RunOrigin> origin = read_origin(folder);
  if (!origin || !origin->from) return own;
  return origin->from->train_seconds < 0 ? -1 : own + origin->from->train_seconds;
}

}  // namespace fairway
