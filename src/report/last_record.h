// The state that a run's .jsonl file ends with.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace fairway {

// The last whole record that has the key; null where the file is missing or no line has it.
nlohmann::ordered_json last_record_with(const std::filesystem::path& path, const char* key);

}  // namespace fairway
