// A list of files that can be fetched: sets by name, each file with its size and SHA-256, and the mirrors that have them. What
// the list looks like is told in docs/data.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fairway::fetch {

struct ListedFile {
  std::string name;  // in the folder it is fetched to: a bare name
  std::string path;  // behind a mirror's address
  uint64_t bytes = 0;
  std::string sha256;
  bool is_train_shard() const { return name.starts_with("fineweb_train_"); }
};

struct FileSet {
  std::string name;
  std::vector<std::string> mirrors;  // addresses that end with "/", in the order they are tried
  std::vector<ListedFile> files;
};

struct FetchManifest {
  std::vector<FileSet> sets;
};

inline constexpr uint64_t kMostManifestBytes = uint64_t{16} << 20;

// InputError naming `name`, the entry and what was expected of it. `base` is the mirror of sets that have none; may be empty.
FetchManifest parse_fetch_manifest(const std::string& text, const std::string& name, const std::string& base = "");
// InputError that lists the sets there are.
const FileSet& find_set(const FetchManifest& manifest, const std::string& set, const std::string& name);

bool is_address(const std::string& text);             // http:// or https://
std::string mirror_address(const std::string& text);  // with "/" at its end; InputError when it is none

}  // namespace fairway::fetch
