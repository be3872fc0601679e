// Token shards (spec §1.1): 1024-byte header (magic, version, count as int32), then count uint16 tokens, little endian. Mapped,
// so opening hundreds of them reads one header each and touches no token. A shard that is changed or cut short while it is
// open is reported as an InputError by the read that meets it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/file_identity.h"
#include "base/sha256.h"

namespace fairway::data {

inline constexpr int32_t kShardMagic = 20240520, kShardVersion = 1;
inline constexpr uint64_t kShardHeaderBytes = 1024;
inline constexpr uint64_t kMaxShardTokens = 0x7FFFFFFF;  // the header's count is an int32

struct Window {
  uint32_t shard = 0;
  uint64_t position = 0;  // of the first token
  bool operator==(const Window&) const = default;
};

// Where one window of T + 1 tokens goes: T inputs and the T targets one place on.
struct Cut {
  uint64_t position = 0;
  int32_t* tokens = nullptr;
  int32_t* targets = nullptr;
};

class Shard {
 public:
  explicit Shard(const std::filesystem::path& path);  // checks header and size
  ~Shard();
  Shard(Shard&& other) noexcept;
  Shard& operator=(Shard&&) = delete;

  const std::filesystem::path& path() const { return file_.path(); }
  uint64_t tokens() const { return count_; }

  void read(uint64_t position, std::span<uint16_t> out) const;
  FileIdentity identity_of(std::span<const uint16_t> all) const;  // of the file, given all its tokens as they were read
  // Cuts windows of `length` + 1 tokens that all lie inside, best in rising order; every token must be below `vocab` (0: not
  // checked).
  void cut(std::span<const Cut> cuts, int64_t length, int vocab) const;
  uint64_t find(uint16_t token, uint64_t from) const;  // its first place at or after `from`, or tokens()

 private:
  void check_unchanged(bool fault) const;
  void prefetch(uint64_t begin, uint64_t end) const;  // starts bringing in tokens [begin, end)
  void check_tokens(std::span<const Cut> cuts, int64_t length, int vocab) const;

  InputFile file_;
  const uint16_t* data_ = nullptr;  // the first token; null when there is none
  uint64_t count_ = 0;
  int64_t changed_seconds_ = 0, changed_nanoseconds_ = 0;  // modification time when it was opened
};

class ShardSet {
 public:
  // `fineweb_train_*.bin` in lexicographic order. Where the folder has a manifest, token counts must agree with it. InputError
  // when there is none.
  static ShardSet open_train(const std::filesystem::path& folder);
  static ShardSet open(const std::vector<std::filesystem::path>& files);  // InputError for a validation shard: see validation.h

  size_t size() const { return shards_.size(); }
  const Shard& operator[](size_t i) const { return shards_[i]; }
  uint64_t total() const { return begins_.back(); }
  uint64_t begin_of(size_t shard) const { return begins_[shard]; }  // in the concatenation of all shards
  Window locate(uint64_t index) const;                              // of a token of the concatenation
  uint64_t fingerprint() const;                                     // of names and counts

  // Tokens of the concatenation from `at` on; past the last shard it goes on with the first.
  void read_wrapped(Window at, std::span<uint16_t> out) const;
  // For validation: all tokens in order. The identities are of the bytes that were read, one for each shard.
  std::vector<uint16_t> read_all(std::vector<FileIdentity>* read = nullptr) const;

 private:
  friend class Validation;
  static ShardSet open_any(const std::vector<std::filesystem::path>& files);
  static ShardSet open_listed(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& files,
                              std::string_view pattern);

  std::vector<Shard> shards_;
  std::vector<uint64_t> begins_{0};
};

std::vector<std::filesystem::path> list_train(const std::filesystem::path& folder);
std::vector<std::filesystem::path> list_validation(const std::filesystem::path& folder);

// Writes one shard of a count known beforehand; nothing is left behind unless finish() is reached.
class ShardWriter {
 public:
  ShardWriter(const std::filesystem::path& path, uint64_t tokens);
  void append(std::span<const uint16_t> tokens);
  std::string finish();  // SHA-256 of the file

 private:
  AtomicFile file_;
  Sha256 hash_;
  uint64_t left_;
};

std::string write_shard(const std::filesystem::path& path, std::span<const uint16_t> tokens);

}  // namespace fairway::data
