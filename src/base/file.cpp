#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace fairway {
namespace {

[[noreturn]] void fail_write(const std::filesystem::path& path, const char* doing) {
  throw WorkError(fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(errno)));
}

void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the rename is done; only its durability is weaker
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) throw InputError(fmt::format("{}: cannot open for reading: {}", path.string(), std::strerror(errno)));
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || S_ISDIR(info.st_mode)) {
    ::close(fd_);
    throw InputError(fmt::format("{}: expected a file, found a folder", path.string()));
  }
}
InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}
InputFile::InputFile(InputFile&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

uint64_t InputFile::size() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0)
    throw InputError(fmt::format("{}: cannot read its size: {}", path_.string(), std::strerror(errno)));
  return static_cast<uint64_t>(info.st_size);
}

size_t InputFile::read_some(void* out, size_t bytes) const {
  for (;;) {
    const ssize_t got = ::read(fd_, out, bytes);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) throw InputError(fmt::format("{}: cannot read: {}", path_.string(), std::strerror(errno)));
  }
}

size_t InputFile::read_at(void* out, size_t bytes, uint64_t offset) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd_, static_cast<char*>(out) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got > 0) done += static_cast<size_t>(got);
    if (got < 0 && errno != EINTR)
      throw InputError(fmt::format("{}: cannot read at byte {}: {}", path_.string(), offset + done, std::strerror(errno)));
  }
  return done;
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path), temporary_(path.string() + ".partial") {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail_write(temporary_, "create it");
}
AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}
AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), fd_(std::exchange(other.fd_, -1)) {}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(fd_, from, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_write(temporary_, "write");
    from += put;
    bytes -= static_cast<size_t>(put);
  }
}

void AtomicFile::write_at(const void* data, size_t bytes, uint64_t offset) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(fd_, from, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_write(temporary_, "write");
    from += put;
    offset += static_cast<uint64_t>(put);
    bytes -= static_cast<size_t>(put);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail_write(temporary_, "sync it to disk");
  if (::close(std::exchange(fd_, -1)) != 0) fail_write(temporary_, "close it");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    errno = reason;
    fail_write(path_, "rename its temporary file");
  }
  sync_folder_of(path_);
}

std::string read_file(const std::filesystem::path& path, uint64_t limit) {
  const InputFile file(path);
  const uint64_t size = file.size();
  if (size > limit) throw InputError(fmt::format("{}: {} bytes; at most {} expected", path.string(), size, limit));
  std::string bytes(size, '\0');
  bytes.resize(file.read_at(bytes.data(), bytes.size(), 0));
  return bytes;
}

void write_file_atomic(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace fairway
