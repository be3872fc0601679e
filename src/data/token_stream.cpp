#include "data/token_stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "data/manifest.h"

namespace fairway::data {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* doing) {
  throw WorkError(fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(errno)));
}

// Opens for appending with exactly `bytes` kept of what was there.
int open_at(const std::filesystem::path& path, uint64_t bytes) {
  const int fd = disk::open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) fail(path, "create it");
  if (disk::truncate(fd, bytes) != 0 || ::lseek(fd, 0, SEEK_END) < 0) fail(path, "set its length");
  return fd;
}

// At `offset`, or behind what is there where there is none.
template <class Word>
void write_all(int fd, std::optional<uint64_t> offset, std::span<const Word> values, const std::filesystem::path& path) {
  const auto* from = reinterpret_cast<const char*>(values.data());
  for (size_t done = 0; done < values.size_bytes();) {
    const size_t left = values.size_bytes() - done;
    const ssize_t put = offset ? disk::write_at(fd, from + done, left, *offset + done) : disk::write(fd, from + done, left);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail(path, "write");
    done += static_cast<size_t>(put);
  }
}

template <class Word>
void read_all(int fd, uint64_t position, std::span<Word> out, const std::filesystem::path& path) {
  auto* to = reinterpret_cast<char*>(out.data());
  for (size_t done = 0; done < out.size_bytes();) {
    const ssize_t got = disk::read_at(fd, to + done, out.size_bytes() - done, sizeof(Word) * position + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(path, "read back");
    done += static_cast<size_t>(got);
  }
}

bool read_journal(const std::filesystem::path& path, const std::string& key, StreamState& state) {
  if (!std::filesystem::exists(path)) return false;
  try {
    const auto json = parse_json_or_discard(read_file(path, 1 << 16), path.string());
    if (json.at("key").get<std::string>() != key) return false;
    state = {json.at("file"),          json.at("records"),    json.at("documents"), json.at("tokens"),
             json.at("bytes"),         json.at("text_bytes"), json.at("hashes"),    json.at("changed_documents"),
             json.at("changed_bytes"), json.at("left_out")};
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;  // an unreadable journal only costs the work it stood for
  }
}

bool holds(const std::filesystem::path& path, uint64_t bytes) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  return !error && size >= bytes;
}

}  // namespace

TokenStream::TokenStream(const std::filesystem::path& folder, const std::string& name, std::string key, Beside beside)
    : tokens_path_(unfinished_mark(folder, name)),
      beside_path_(folder / (".tokenize_" + name + (beside == Beside::hashes ? ".hashes" : ".bytes"))),
      journal_path_(folder / (".tokenize_" + name + ".json")),
      key_(std::move(key)),
      beside_(beside) {
  const auto bytes_beside = [&](const StreamState& of) { return beside == Beside::hashes ? 8 * of.hashes : 2 * of.tokens; };
  StreamState state;
  if (read_journal(journal_path_, key_, state) && holds(tokens_path_, 2 * state.tokens) &&
      holds(beside_path_, bytes_beside(state)))
    state_ = state;
  resumed_ = state_.documents;
  tokens_fd_ = open_at(tokens_path_, 2 * state_.tokens);
  beside_fd_ = open_at(beside_path_, bytes_beside(state_));
}

TokenStream::~TokenStream() {
  for (const int fd : {tokens_fd_, beside_fd_})
    if (fd >= 0) ::close(fd);
}

void TokenStream::append(std::span<const uint16_t> tokens, std::span<const uint16_t> bytes, std::span<const uint64_t> hashes) {
  write_all(tokens_fd_, {}, tokens, tokens_path_);
  if (beside_ == Beside::hashes)
    write_all(beside_fd_, {}, hashes, beside_path_);
  else
    write_all(beside_fd_, {}, bytes, beside_path_);
}

void TokenStream::checkpoint() {
  if (disk::sync(tokens_fd_) != 0) fail(tokens_path_, "sync it to disk");
  if (disk::sync(beside_fd_) != 0) fail(beside_path_, "sync it to disk");
  const nlohmann::json json = {{"key", key_},
                               {"file", state_.file},
                               {"records", state_.records},
                               {"documents", state_.documents},
                               {"tokens", state_.tokens},
                               {"bytes", state_.bytes},
                               {"text_bytes", state_.text_bytes},
                               {"hashes", state_.hashes},
                               {"changed_documents", state_.changed_documents},
                               {"changed_bytes", state_.changed_bytes},
                               {"left_out", state_.left_out}};
  write_file_atomic(journal_path_, json.dump() + "\n");
}

void TokenStream::remove() {
  for (const auto& path : {journal_path_, beside_path_, tokens_path_}) remove_file(path);  // the mark of unfinished work last
}

void TokenStream::read(uint64_t position, std::span<uint16_t> out) const { read_all(tokens_fd_, position, out, tokens_path_); }
void TokenStream::read_bytes(uint64_t position, std::span<uint16_t> out) const {
  read_all(beside_fd_, position, out, beside_path_);
}
void TokenStream::read_hashes(uint64_t position, std::span<uint64_t> out) const {
  read_all(beside_fd_, position, out, beside_path_);
}
void TokenStream::write_hashes(uint64_t position, std::span<const uint64_t> hashes) {
  write_all(beside_fd_, sizeof(uint64_t) * position, hashes, beside_path_);
}

}  // namespace fairway::data
