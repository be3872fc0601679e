// Zip files as PyTorch writes them: entries stored, not compressed, found through the central directory alone (local headers
// may hold zeros for sizes and sums). Nothing in the file is trusted; an entry's sum is checked when the entry is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fairway::interchange {

class ZipArchive {
 public:
  // `bytes` outlive the archive. InputErrors begin with `name`.
  ZipArchive(std::string_view bytes, std::string name);

  struct Entry {
    uint64_t local = 0;  // where its local header begins
    uint64_t size = 0;
    uint32_t crc = 0;
  };
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  bool has(const std::string& entry) const { return entries_.contains(entry); }
  // Its bytes; `of_what` ("tensor 'kv_bank'") is named when they are damaged.
  std::string_view read(const std::string& entry, const std::string& of_what) const;

 private:
  void read_directory(uint64_t begin, uint64_t size, uint64_t count);
  [[noreturn]] void refuse(const std::string& sentence) const;

  std::string_view bytes_;
  std::string name_;
  std::map<std::string, Entry, std::less<>> entries_;
};

// Entries are stored, their data aligned to 64 bytes as PyTorch does it; at most 4 GiB in all.
class ZipWriter {
 public:
  void add(const std::string& entry, std::string_view data);
  std::string finish() &&;  // the whole file

 private:
  std::string file_, directory_;
  uint16_t count_ = 0;
};

}  // namespace fairway::interchange
