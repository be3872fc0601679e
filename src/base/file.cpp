#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/disk.h"
#include "base/error.h"

namespace fairway {
namespace {

[[noreturn]] void fail_write(const std::filesystem::path& path, const char* doing) {
  throw WorkError(fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(errno)));
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = folder_of(path);
  const int fd = disk::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the rename is done; only its durability is weaker
  disk::sync(fd);
  ::close(fd);
}

constexpr std::string_view kTemporaryEnd = ".partial";
constexpr int kMostAttempts = 1000;
constexpr size_t kMostOfName = 200;  // bytes; what is added must fit into a name too

std::string temporary_start(const std::filesystem::path& path) {
  return "." + path.filename().string().substr(0, kMostOfName) + ".";
}

// A living writer holds a lock on its temporary file; what can be locked was left by one that was killed.
void remove_abandoned(const std::filesystem::path& path) {
  const std::string start = temporary_start(path);
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder_of(path), error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(kTemporaryEnd)) continue;
    const int fd = disk::open(entry->path(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0) disk::remove(entry->path());
    ::close(fd);
  }
}

// Locked and still named: remove_abandoned may have come between its creation and its lock. Where the file system has no locks,
// nobody can take it for abandoned either.
bool keeps_name(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat info {};
  return ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

}  // namespace

bool is_bare_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

// Without O_NONBLOCK opening a pipe waits for its writer. Pipes and devices have no size, and some of them no end.
InputFile::InputFile(const std::filesystem::path& path)
    : path_(path), fd_(disk::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) throw InputError(fmt::format("{}: cannot open for reading: {}", path.string(), std::strerror(errno)));
  struct stat info {};
  if (::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) return;
  ::close(fd_);
  throw InputError(
      fmt::format("{}: expected a file, found {}", path.string(), S_ISDIR(info.st_mode) ? "a folder" : "a pipe or a device"));
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
    const ssize_t got = disk::read(fd_, out, bytes);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) throw InputError(fmt::format("{}: cannot read: {}", path_.string(), std::strerror(errno)));
  }
}

size_t InputFile::read_at(void* out, size_t bytes, uint64_t offset) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = disk::read_at(fd_, static_cast<char*>(out) + done, bytes - done, offset + done);
    if (got == 0) break;
    if (got > 0) done += static_cast<size_t>(got);
    if (got < 0 && errno != EINTR)
      throw InputError(fmt::format("{}: cannot read at byte {}: {}", path_.string(), offset + done, std::strerror(errno)));
  }
  return done;
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  static std::atomic<uint64_t> made{0};
  remove_abandoned(path);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    temporary_ = folder_of(path) / fmt::format("{}{}.{}{}", temporary_start(path), ::getpid(), made++, kTemporaryEnd);
    fd_ = disk::open(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
    if (fd_ < 0 && errno == EEXIST) continue;  // of a writer elsewhere that has our process id
    if (fd_ < 0) fail_write(path_, "create a file beside it");
    if (keeps_name(fd_)) return;
    ::close(std::exchange(fd_, -1));
  }
  throw WorkError(path.string() + ": a temporary file beside it keeps vanishing");
}
AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  disk::remove(temporary_);
}
AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), fd_(std::exchange(other.fd_, -1)) {}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = disk::write(fd_, from, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_write(path_, "write");
    from += put;
    bytes -= static_cast<size_t>(put);
  }
}

void AtomicFile::write_at(const void* data, size_t bytes, uint64_t offset) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = disk::write_at(fd_, from, bytes, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_write(path_, "write");
    from += put;
    offset += static_cast<uint64_t>(put);
    bytes -= static_cast<size_t>(put);
  }
}

void AtomicFile::commit() {
  if (disk::sync(fd_) != 0) fail_write(path_, "sync it to disk");
  if (const std::error_code error = disk::rename(temporary_, path_))
    throw WorkError(fmt::format("{}: cannot rename its temporary file: {}", path_.string(), error.message()));
  ::close(std::exchange(fd_, -1));  // after the rename: without its lock the file would seem abandoned
  sync_folder_of(path_);
}

AppendFile::AppendFile(const std::filesystem::path& path)
    : path_(path), fd_(disk::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC)) {
  if (fd_ < 0) fail_append();
}

void AppendFile::fail_append() const {
  throw WorkError(fmt::format("{}: cannot be written ({})", path_.string(), std::strerror(errno)));
}

AppendFile::AppendFile(AppendFile&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = disk::write(fd_, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_append();
    text.remove_prefix(static_cast<size_t>(put));
  }
}

void AppendFile::sync() {
  if (disk::sync(fd_) != 0 && errno != EINVAL) fail_append();  // EINVAL: a device, which keeps nothing
}

void move_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (const std::error_code error = disk::rename(from, to))
    throw WorkError(fmt::format("{}: cannot be renamed to {}: {}", from.string(), to.string(), error.message()));
  sync_folder_of(to);
}

void remove_file(const std::filesystem::path& path) {
  if (const std::error_code error = disk::remove_all(path))
    throw WorkError(fmt::format("{}: cannot be removed: {}", path.string(), error.message()));
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
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
