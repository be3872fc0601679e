// JSON that this program did not make in the same breath: every file and every line of one is parsed here. Values nested deeper
// than kMostJsonLevels are an InputError before anything is built, since destroying, copying and printing them recurse.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fairway {

constexpr int kMostJsonLevels = 64;

// InputError naming `name` and the byte where nesting first goes deeper.
void require_flat_json(std::string_view text, const std::string& name, int most = kMostJsonLevels);

// `Json` is nlohmann::json or nlohmann::ordered_json. InputError naming `name` and the byte where it is no JSON.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, const std::string& name);

// As parse_json, but what is no JSON comes back as discarded: a line cut by a kill, a file that the caller explains better.
template <class Json = nlohmann::json>
Json parse_json_or_discard(std::string_view text, const std::string& name);

}  // namespace fairway
