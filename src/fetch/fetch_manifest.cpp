#include "fetch/fetch_manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/nearest_word.h"

namespace fairway::fetch {
namespace {

using nlohmann::ordered_json;

constexpr int kFetchVersion = 1;
constexpr uint64_t kMostFileBytes = uint64_t{1} << 42;
constexpr size_t kMostName = 200, kMostPath = 1000;

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Stays below the mirror's address, and needs no quoting there.
bool is_plain_path(const std::string& path) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/._-+").find(c) != std::string_view::npos;
  };
  if (path.empty() || path.size() > kMostPath || path.starts_with("/") || !std::all_of(path.begin(), path.end(), plain))
    return false;
  return ("/" + path + "/").find("/../") == std::string::npos;
}

ListedFile parse_file(const ordered_json& entry, const std::string& where) {
  ListedFile file{.name = entry.at("name").get<std::string>(), .bytes = entry.at("bytes").get<uint64_t>()};
  const auto refuse = [&](const std::string& what) { throw InputError(fmt::format("{}, {}: {}", where, file.name, what)); };
  if (!is_bare_name(file.name) || file.name.starts_with(".") || file.name.size() > kMostName)
    refuse("not the bare name of a file");
  file.path = entry.value("path", file.name);
  if (!is_plain_path(file.path)) refuse("the path \"" + file.path + "\" does not lead from a mirror's address downwards");
  if (!entry.contains("sha256")) refuse("has no \"sha256\"; nothing is fetched that cannot be checked");
  file.sha256 = entry.at("sha256").get<std::string>();
  if (!is_sha256(file.sha256)) refuse("its \"sha256\" is not 64 hexadecimal digits in lower case");
  if (file.bytes < 1 || file.bytes > kMostFileBytes)
    refuse(fmt::format("{} bytes; expected 1 to {}", file.bytes, kMostFileBytes));
  return file;
}

std::vector<std::string> parse_mirrors(const ordered_json& json) {
  std::vector<std::string> out;
  for (const ordered_json& mirror : json.value("mirrors", ordered_json::array()))
    out.push_back(mirror_address(mirror.get<std::string>()));
  return out;
}

FileSet parse_set(const std::string& set, const ordered_json& json, const std::string& where) {
  FileSet out{.name = set, .mirrors = parse_mirrors(json)};
  std::set<std::string> names;
  for (const ordered_json& entry : json.at("files")) {
    out.files.push_back(parse_file(entry, where));
    if (!names.insert(out.files.back().name).second)
      throw InputError(fmt::format("{}: lists {} twice", where, out.files.back().name));
  }
  if (out.files.empty()) throw InputError(where + ": lists no files");
  return out;
}

}  // namespace

bool is_address(const std::string& text) { return text.starts_with("http://") || text.starts_with("https://"); }

std::string mirror_address(const std::string& text) {
  const bool printable = std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7F; });
  if (!is_address(text) || !printable || text.size() > kMostPath)
    throw InputError(fmt::format("the mirror \"{}\" is no address; expected one that begins with http:// or https://", text));
  return text.ends_with("/") ? text : text + "/";
}

FetchManifest parse_fetch_manifest(const std::string& text, const std::string& name, const std::string& base) {
  try {
    const auto json = parse_json<ordered_json>(text, name);
    if (json.at("fetch").get<int>() != kFetchVersion)
      throw InputError(fmt::format("{}: version {} is not known, expected {}", name, json.at("fetch").dump(), kFetchVersion));
    const std::vector<std::string> common = parse_mirrors(json);
    FetchManifest manifest;
    for (const auto& [set, listed] : json.at("sets").items()) {
      manifest.sets.push_back(parse_set(set, listed, fmt::format("{}: set {}", name, set)));
      std::vector<std::string>& mirrors = manifest.sets.back().mirrors;
      mirrors.insert(mirrors.end(), common.begin(), common.end());
      if (mirrors.empty() && !base.empty()) mirrors.push_back(base);
    }
    if (manifest.sets.empty()) throw InputError(name + ": has no sets of files");
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{}: not a list of files to fetch: {}", name, error.what()));
  }
}

const FileSet& find_set(const FetchManifest& manifest, const std::string& set, const std::string& name) {
  std::vector<std::string> known;
  std::string all;
  for (const FileSet& listed : manifest.sets) {
    if (listed.name == set) return listed;
    known.push_back(listed.name);
    if (known.size() <= 20) all += (all.empty() ? "" : ", ") + listed.name;
  }
  throw InputError(fmt::format("{}: has no set \"{}\"; the nearest is {}, of {}", name, set, nearest_word(set, known), all));
}

}  // namespace fairway::fetch
