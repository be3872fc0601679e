#include "data/shard.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "data/fault_guard.h"

namespace fairway::data {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw InputError(fmt::format("{}: {}", path.string(), what));
}

uint64_t check_header(const InputFile& file) {
  std::array<int32_t, 3> header{};
  const uint64_t size = file.size();
  if (size < kShardHeaderBytes || file.read_at(header.data(), sizeof header, 0) != sizeof header)
    fail(file.path(), fmt::format("{} bytes are too few for a shard's header of {}", size, kShardHeaderBytes));
  if (header[0] != kShardMagic)
    fail(file.path(), fmt::format("not a token shard: expected magic number {}, found {}", kShardMagic, header[0]));
  if (header[1] != kShardVersion)
    fail(file.path(), fmt::format("shard version {} is not known, expected {}", header[1], kShardVersion));
  if (header[2] < 0) fail(file.path(), fmt::format("its header gives {} tokens", header[2]));
  const auto count = static_cast<uint64_t>(header[2]);
  if (size != kShardHeaderBytes + 2 * count)
    fail(file.path(), fmt::format("its header gives {} tokens, so {} bytes were expected, but it has {}", count,
                                  kShardHeaderBytes + 2 * count, size));
  return count;
}

// One pass over T + 1 tokens; the OR of all is an upper bound of the largest and cheaper to keep.
uint32_t widen(const uint16_t* from, int64_t length, int32_t* tokens, int32_t* targets) {
  uint16_t seen = 0;
  for (int64_t i = 0; i < length; ++i) {
    tokens[i] = from[i];
    seen |= from[i];
  }
  for (int64_t i = 0; i < length; ++i) targets[i] = from[i + 1];
  return seen | static_cast<uint32_t>(from[length]);
}

struct CutJob {
  const uint16_t* data;
  std::span<const Cut> cuts;
  int64_t length;
  uint32_t seen;
};

struct CopyJob {
  const uint16_t* from;
  uint16_t* out;
  size_t count;
};

struct FindJob {
  const uint16_t* at;
  const uint16_t* end;
  uint16_t token;
};

}  // namespace

Shard::Shard(const std::filesystem::path& path) : file_(path), count_(check_header(file_)) {
  struct stat info {};
  if (::fstat(file_.descriptor(), &info) != 0) fail(path, "cannot read its modification time");
  changed_seconds_ = info.st_mtim.tv_sec;
  changed_nanoseconds_ = info.st_mtim.tv_nsec;
  if (count_ == 0) return;
  void* mapped = ::mmap(nullptr, kShardHeaderBytes + 2 * count_, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
  if (mapped == MAP_FAILED) fail(path, fmt::format("cannot be mapped: {}", std::strerror(errno)));
  // Without this a fault on a cold page reads the disk's whole readahead (4 MiB seen) for a window of 4 KiB; ranges that will
  // be used are asked for in prefetch() instead.
  ::madvise(mapped, kShardHeaderBytes + 2 * count_, MADV_RANDOM);
  data_ = reinterpret_cast<const uint16_t*>(static_cast<const char*>(mapped) + kShardHeaderBytes);
}

Shard::~Shard() {
  if (data_ == nullptr) return;
  const void* mapped = reinterpret_cast<const char*>(data_) - kShardHeaderBytes;
  ::munmap(const_cast<void*>(mapped), kShardHeaderBytes + 2 * count_);
}

Shard::Shard(Shard&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      count_(other.count_),
      changed_seconds_(other.changed_seconds_),
      changed_nanoseconds_(other.changed_nanoseconds_) {}

// A file cut inside its last page raises no signal and reads as zeros, so size and time are looked at after every read.
void Shard::check_unchanged(bool fault) const {
  struct stat info {};
  const bool known = ::fstat(file_.descriptor(), &info) == 0;
  const uint64_t expected = kShardHeaderBytes + 2 * count_;
  if (known && static_cast<uint64_t>(info.st_size) != expected)
    fail(path(), fmt::format("changed while in use: it had {} bytes and now has {}", expected, info.st_size));
  if (fault) fail(path(), "cannot be read any more: the system failed to bring in a page of it");
  if (!known || info.st_mtim.tv_sec != changed_seconds_ || info.st_mtim.tv_nsec != changed_nanoseconds_)
    fail(path(), "changed while in use: it was written to after it was opened");
}

void Shard::prefetch(uint64_t begin, uint64_t end) const {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data_ + begin) / page * page;
  ::madvise(reinterpret_cast<void*>(first), reinterpret_cast<uintptr_t>(data_ + end) - first, MADV_WILLNEED);  // advice only
}

void Shard::read(uint64_t position, std::span<uint16_t> out) const {
  FAIRWAY_ASSERT(position <= count_ && out.size() <= count_ - position, "a read past the end of a shard");
  CopyJob job{data_ + position, out.data(), out.size()};
  const auto body = [](void* context) {
    const auto& copy = *static_cast<CopyJob*>(context);
    std::memcpy(copy.out, copy.from, copy.count * sizeof(uint16_t));
  };
  if (out.empty()) return;
  prefetch(position, position + out.size());
  check_unchanged(!run_guarded(body, &job));
}

FileIdentity Shard::identity_of(std::span<const uint16_t> all) const {
  FAIRWAY_ASSERT(all.size() == count_, "a part of a shard has no identity");
  std::array<char, kShardHeaderBytes> header{};
  if (file_.read_at(header.data(), header.size(), 0) != header.size()) check_unchanged(true);
  Sha256 hash;
  hash.update(header.data(), header.size());
  hash.update(all.data(), all.size_bytes());
  return {path(), kShardHeaderBytes + all.size_bytes(), hash.hex()};
}

void Shard::cut(std::span<const Cut> cuts, int64_t length, int vocab) const {
  for (const Cut& cut : cuts)
    FAIRWAY_ASSERT(cut.position < count_ && static_cast<uint64_t>(length) < count_ - cut.position,
                   "a window past the end of a shard");
  const uint64_t window = static_cast<uint64_t>(length) + 1, gap = static_cast<uint64_t>(length) / 2;
  for (size_t i = 0; i < cuts.size();) {  // merged slabs (spec §12.1): one request for windows at most T / 2 apart
    const uint64_t begin = cuts[i].position;
    uint64_t end = begin + window;
    for (++i; i < cuts.size() && cuts[i].position >= begin && cuts[i].position <= end + gap; ++i)
      end = std::max(end, cuts[i].position + window);
    prefetch(begin, end);
  }
  CutJob job{data_, cuts, length, 0};
  const auto body = [](void* context) {
    auto& work = *static_cast<CutJob*>(context);
    uint32_t seen = 0;
    for (const Cut& cut : work.cuts) seen |= widen(work.data + cut.position, work.length, cut.tokens, cut.targets);
    work.seen = seen;
  };
  check_unchanged(!run_guarded(body, &job));
  if (vocab > 0 && job.seen >= static_cast<uint32_t>(vocab)) check_tokens(cuts, length, vocab);
}

// Returns after all when the largest token is within the vocabulary: the OR that led here may be larger than every token.
void Shard::check_tokens(std::span<const Cut> cuts, int64_t length, int vocab) const {
  for (const Cut& cut : cuts)
    for (int64_t i = 0; i <= length; ++i) {
      const int32_t token = i < length ? cut.tokens[i] : cut.targets[length - 1];
      if (token < vocab) continue;
      fail(path(), fmt::format("token {} at position {} is outside the vocabulary of {}", token,
                               cut.position + static_cast<uint64_t>(i), vocab));
    }
}

uint64_t Shard::find(uint16_t token, uint64_t from) const {
  constexpr uint64_t kSlab = 1 << 18;
  const auto body = [](void* context) {
    auto& work = *static_cast<FindJob*>(context);
    while (work.at < work.end && *work.at != work.token) ++work.at;
  };
  while (from < count_) {
    const uint64_t end = std::min(from + kSlab, count_);
    FindJob job{data_ + from, data_ + end, token};
    prefetch(from, end);
    check_unchanged(!run_guarded(body, &job));
    from = static_cast<uint64_t>(job.at - data_);
    if (job.at < job.end) return from;
  }
  return count_;
}

ShardWriter::ShardWriter(const std::filesystem::path& path, uint64_t tokens) : file_(path), left_(tokens) {
  if (tokens > kMaxShardTokens)
    throw InputError(
        fmt::format("{}: a shard holds at most {} tokens, {} were to be written", path.string(), kMaxShardTokens, tokens));
  std::array<int32_t, kShardHeaderBytes / 4> header{};
  header[0] = kShardMagic;
  header[1] = kShardVersion;
  header[2] = static_cast<int32_t>(tokens);
  file_.write(header.data(), sizeof header);
  hash_.update(header.data(), sizeof header);
}

void ShardWriter::append(std::span<const uint16_t> tokens) {
  FAIRWAY_ASSERT(tokens.size() <= left_, "more tokens than the shard's header announced");
  left_ -= tokens.size();
  file_.write(tokens.data(), tokens.size_bytes());
  hash_.update(tokens.data(), tokens.size_bytes());
}

std::string ShardWriter::finish() {
  FAIRWAY_ASSERT(left_ == 0, "fewer tokens than the shard's header announced");
  file_.commit();
  return hash_.hex();
}

std::string write_shard(const std::filesystem::path& path, std::span<const uint16_t> tokens) {
  ShardWriter writer(path, tokens.size());
  writer.append(tokens);
  return writer.finish();
}

}  // namespace fairway::data
