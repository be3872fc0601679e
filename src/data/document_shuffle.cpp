#include "data/document_shuffle.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/disk.h"
#include "base/error.h"
#include "base/rng.h"
#include "tokenizer/vocabulary.h"

namespace fairway::data {
namespace {

constexpr size_t kMaxBuckets = 1024, kBucketBuffer = size_t{1} << 14, kKeyWords = 4, kHeadWords = kKeyWords + 2;

// Calls take(document) for each document, which begins with BOS; the first may not, if the stream does not.
template <class Take>
void walk_documents(const TokenStream& stream, Take take) {
  std::vector<uint16_t> slab(size_t{1} << 20), document;
  const uint64_t tokens = stream.state().tokens;
  for (uint64_t at = 0; at < tokens;) {
    const auto part = std::span(slab).first(std::min<uint64_t>(slab.size(), tokens - at));
    stream.read(at, part);
    for (const uint16_t token : part) {
      if (token == kBosId && !document.empty()) {
        take(std::span<const uint16_t>(document));
        document.clear();
      }
      document.push_back(token);
    }
    at += part.size();
  }
  if (!document.empty()) take(std::span<const uint16_t>(document));
}

template <class Transfer, class Word>
void transfer_all(Transfer transfer, int fd, std::span<Word> words, uint64_t at, const std::filesystem::path& path) {
  for (size_t done = 0; done < words.size_bytes();) {
    auto* place = reinterpret_cast<std::conditional_t<std::is_const_v<Word>, const char, char>*>(words.data()) + done;
    const ssize_t moved = transfer(fd, place, words.size_bytes() - done, 2 * at + done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0)
      throw WorkError(fmt::format("{}: cannot write or read back shuffled documents: {}", path.string(), std::strerror(errno)));
    done += static_cast<size_t>(moved);
  }
}

}  // namespace

DocumentShuffle::DocumentShuffle(const TokenStream& stream, const std::filesystem::path& folder, uint64_t seed,
                                 uint64_t bucket_words)
    : path_(folder / ".tokenize_shuffle"), seed_(seed) {
  const uint64_t words = stream.state().tokens + kHeadWords * stream.state().documents;
  begins_.resize(1 + std::clamp<uint64_t>((words + bucket_words - 1) / bucket_words, 1, kMaxBuckets));
  count(stream);
  fd_ = disk::open(path_, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
  if (fd_ < 0 || disk::remove(path_))
    throw WorkError(fmt::format("{}: cannot create it: {}", path_.string(), std::strerror(errno)));
  try {
    distribute(stream);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

DocumentShuffle::~DocumentShuffle() { ::close(fd_); }

uint64_t DocumentShuffle::key_of(uint64_t document) const {
  const auto words = philox4x32({static_cast<uint32_t>(document), static_cast<uint32_t>(document >> 32), 0, 0},
                                {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  return uint64_t{words[1]} << 32 | words[0];
}

size_t DocumentShuffle::bucket_of(uint64_t key) const {  // rises with the key
  return static_cast<size_t>(static_cast<unsigned __int128>(key) * buckets() >> 64);
}

void DocumentShuffle::count(const TokenStream& stream) {
  uint64_t n = 0;
  walk_documents(
      stream, [&](std::span<const uint16_t> document) { begins_[bucket_of(key_of(n++)) + 1] += kHeadWords + document.size(); });
  for (size_t b = 1; b < begins_.size(); ++b) begins_[b] += begins_[b - 1];
}

void DocumentShuffle::distribute(const TokenStream& stream) {
  std::vector<std::vector<uint16_t>> buffers(buckets());
  std::vector<uint64_t> ends(begins_.begin(), begins_.end() - 1);
  const auto flush = [&](size_t bucket) {
    transfer_all(disk::write_at, fd_, std::span<const uint16_t>(buffers[bucket]), ends[bucket], path_);
    ends[bucket] += buffers[bucket].size();
    buffers[bucket].clear();
  };
  uint64_t n = 0;
  walk_documents(stream, [&](std::span<const uint16_t> document) {
    const uint64_t key = key_of(n++);
    const size_t bucket = bucket_of(key);
    auto& buffer = buffers[bucket];
    for (size_t i = 0; i < kKeyWords; ++i) buffer.push_back(static_cast<uint16_t>(key >> (16 * i)));
    buffer.push_back(static_cast<uint16_t>(document.size()));
    buffer.push_back(static_cast<uint16_t>(document.size() >> 16));
    buffer.insert(buffer.end(), document.begin(), document.end());
    if (buffer.size() >= kBucketBuffer) flush(bucket);
  });
  for (size_t bucket = 0; bucket < buffers.size(); ++bucket) flush(bucket);
}

void DocumentShuffle::load(size_t bucket) {
  held_.resize(begins_[bucket + 1] - begins_[bucket]);
  transfer_all(disk::read_at, fd_, std::span(held_), begins_[bucket], path_);
  order_.clear();
  for (size_t at = 0; at < held_.size();) {
    Document document;
    for (size_t i = 0; i < kKeyWords; ++i) document.key |= uint64_t{held_[at + i]} << (16 * i);
    document.length = held_[at + kKeyWords] | size_t{held_[at + kKeyWords + 1]} << 16;
    document.begin = at + kHeadWords;
    at = document.begin + document.length;
    order_.push_back(document);
  }
  std::sort(order_.begin(), order_.end(), [](const Document& a, const Document& b) {
    return a.key != b.key ? a.key < b.key : a.begin < b.begin;  // equal keys keep the order of the text
  });
  document_ = at_ = 0;
}

void DocumentShuffle::next(std::span<uint16_t> out) {
  for (size_t done = 0; done < out.size();) {
    if (document_ == order_.size()) {
      if (loaded_ == buckets()) throw WorkError("more tokens were asked of shuffled documents than they have");
      load(loaded_++);
      continue;
    }
    const Document& document = order_[document_];
    const size_t part = std::min(out.size() - done, document.length - at_);
    std::copy_n(held_.begin() + static_cast<std::ptrdiff_t>(document.begin + at_), part,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += part;
    at_ += part;
    if (at_ == document.length) ++document_, at_ = 0;
  }
}

}  // namespace fairway::data
