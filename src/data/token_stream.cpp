#include "data/token_stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace fairway::data {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* doing) {
  throw WorkError(fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(errno)));
}

// Opens for appending with exactly `bytes` kept of what was there.
int open_at(const std::filesystem::path& path, uint64_t bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) fail(path, "create it");
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0 || ::lseek(fd, 0, SEEK_END) < 0) fail(path, "set its length");
  return fd;
}

void write_all(int fd, std::span<const uint16_t> values, const std::filesystem::path& path) {
  const auto* from = reinterpret_cast<const char*>(values.data());
  for (size_t left = values.size_bytes(); left > 0;) {
    const ssize_t put = ::write(fd, from, left);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail(path, "write");
    from += put;
    left -= static_cast<size_t>(put);
  }
}

void read_all(int fd, uint64_t position, std::span<uint16_t> out, const std::filesystem::path& path) {
  auto* to = reinterpret_cast<char*>(out.data());
  for (size_t done = 0; done < out.size_bytes();) {
    const ssize_t got = ::pread(fd, to + done, out.size_bytes() - done, static_cast<off_t>(2 * position + done));
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
    state = {json.at("file"),   json.at("records"), json.at("documents"),
             json.at("tokens"), json.at("bytes"),   json.at("text_bytes")};
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

TokenStream::TokenStream(const std::filesystem::path& folder, const std::string& name, std::string key, bool byte_counts)
    : tokens_path_(folder / (".tokenize_" + name + ".tokens")),
      bytes_path_(folder / (".tokenize_" + name + ".bytes")),
      journal_path_(folder / (".tokenize_" + name + ".json")),
      key_(std::move(key)) {
  StreamState state;
  if (read_journal(journal_path_, key_, state) && holds(tokens_path_, 2 * state.tokens) &&
      (!byte_counts || holds(bytes_path_, 2 * state.tokens)))
    state_ = state;
  resumed_ = state_.documents;
  tokens_fd_ = open_at(tokens_path_, 2 * state_.tokens);
  if (byte_counts) bytes_fd_ = open_at(bytes_path_, 2 * state_.tokens);
}

TokenStream::~TokenStream() {
  if (tokens_fd_ >= 0) ::close(tokens_fd_);
  if (bytes_fd_ >= 0) ::close(bytes_fd_);
}

void TokenStream::append(std::span<const uint16_t> tokens, std::span<const uint16_t> bytes) {
  write_all(tokens_fd_, tokens, tokens_path_);
  if (bytes_fd_ >= 0) write_all(bytes_fd_, bytes, bytes_path_);
}

void TokenStream::checkpoint() {
  if (::fdatasync(tokens_fd_) != 0) fail(tokens_path_, "sync it to disk");
  if (bytes_fd_ >= 0 && ::fdatasync(bytes_fd_) != 0) fail(bytes_path_, "sync it to disk");
  const nlohmann::json json = {{"key", key_},
                               {"file", state_.file},
                               {"records", state_.records},
                               {"documents", state_.documents},
                               {"tokens", state_.tokens},
                               {"bytes", state_.bytes},
                               {"text_bytes", state_.text_bytes}};
  write_file_atomic(journal_path_, json.dump() + "\n");
}

void TokenStream::remove() {
  for (const auto& path : {journal_path_, tokens_path_, bytes_path_}) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
}

void TokenStream::read(uint64_t position, std::span<uint16_t> out) const { read_all(tokens_fd_, position, out, tokens_path_); }
void TokenStream::read_bytes(uint64_t position, std::span<uint16_t> out) const {
  read_all(bytes_fd_, position, out, bytes_path_);
}

}  // namespace fairway::data
