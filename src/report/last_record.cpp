#include "report/last_record.h"

#include <sstream>

#include "base/file.h"
#include "base/json.h"

namespace fairway {

nlohmann::ordered_json last_record_with(const std::filesystem::path& path, const char* key) {
  using nlohmann::ordered_json;
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  if (!std::filesystem::is_regular_file(path) || std::filesystem::file_size(path) > kMostBytes) return nullptr;
  std::istringstream lines(read_file(path, kMostBytes));
  ordered_json last;
  for (std::string line; std::getline(lines, line);) {
    ordered_json record = parse_json_or_discard<ordered_json>(line, path.string());
    if (record.is_object() && record.contains(key)) last = std::move(record);
  }
  return last;
}

}  // namespace fairway
