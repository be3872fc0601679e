#include "report/shared_documents.h"

#include "base/file.h"
#include "base/json.h"

namespace fairway {

SharedTexts shared_texts(const std::filesystem::path& folder, const std::string& text) {
  const std::filesystem::path path = folder / "shared_documents.json";
  if (!std::filesystem::is_regular_file(path)) return {std::nullopt, "not known: no shared_documents.json beside the artifact"};
  const auto told = parse_json_or_discard(read_file(path), path.string());
  const auto field = [&](const char* key) { return told.is_object() ? told.value(key, nlohmann::json()) : nlohmann::json(); };
  const nlohmann::json shared = field("shared"), of = field("text"), sentence = field("sentence");
  std::string detail = sentence.is_string() ? sentence.get<std::string>() : "not known: " + path.string() + " does not tell it";
  if (!shared.is_number_unsigned()) return {std::nullopt, std::move(detail)};
  if (!text.empty() && of != text) return {std::nullopt, "not known: training compared its text with other validation text"};
  return {shared.get<uint64_t>(), std::move(detail)};
}

}  // namespace fairway
