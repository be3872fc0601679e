// A file that is being fetched: kept beside its place under a hidden name, so that a later try goes on where this one ended,
// and put there once it is whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/sha256.h"

namespace fairway::fetch {

class PartialFile {
 public:
  explicit PartialFile(const std::filesystem::path& place);  // what an earlier try left is hashed
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;

  uint64_t bytes() const { return bytes_; }
  void append(std::string_view part);
  void restart();        // drops all of it
  std::string sha256();  // of all of it; nothing can be appended behind it but a new beginning
  void commit();         // syncs and renames

 private:
  std::filesystem::path place_, partial_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  Sha256 hash_;
};

}  // namespace fairway::fetch
