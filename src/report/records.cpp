#include "report/records.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

void add_record(const std::string& line, const fs::path& path, std::vector<ordered_json>& records) {
  ordered_json record = parse_json_or_discard<ordered_json>(line, path.string());
  if (record.is_object()) records.push_back(std::move(record));
}

}  // namespace

std::vector<ordered_json> read_records(const fs::path& path) {
  std::vector<ordered_json> records;
  if (fs::exists(path) && !fs::is_regular_file(path)) throw InputError(path.string() + ": expected a file of records");
  if (!fs::exists(path)) return records;
  for (const std::string& line : read_lines(path)) add_record(line, path, records);
  return records;
}

std::vector<ordered_json> last_records(const fs::path& path) {
  constexpr uint64_t kTail = uint64_t{1} << 16;
  std::vector<ordered_json> records;
  if (!fs::is_regular_file(path)) return records;
  const InputFile file(path);
  const uint64_t size = file.size(), from = size - std::min(size, kTail);
  std::string text(size - from, '\0');
  text.resize(file.read_at(text.data(), text.size(), from));
  size_t at = from == 0 ? 0 : std::min(text.find('\n'), text.size() - 1) + 1;  // the first line may be cut
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    add_record(text.substr(at, end - at), path, records);
    at = end + 1;
  }
  return records;
}

ordered_json read_record_file(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  ordered_json record = parse_json_or_discard<ordered_json>(read_file(path), path.string());
  if (!record.is_object() && !record.is_array()) throw InputError(path.string() + ": is not JSON");
  return record;
}

double number_of(const ordered_json& record, const char* key, double otherwise) {
  return record.is_object() && record.contains(key) && record[key].is_number() ? record[key].get<double>() : otherwise;
}

std::string folder_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

}  // namespace fairway
