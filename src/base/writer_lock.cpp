#include "base/writer_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/disk.h"
#include "base/error.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

struct HeldLock {
  fs::path file;
  int fd = -1, holders = 0;
  pid_t owner = 0;  // a child that is forked inherits the table, but not the right to end the lock
};

std::mutex held_mutex;
std::map<std::pair<dev_t, ino_t>, HeldLock> held_locks;

// The process id in a lock file; 0 when it tells none.
long writer_of(int fd) {
  char text[24] = {};
  if (disk::read_at(fd, text, sizeof text - 1, 0) <= 0) return 0;
  return std::strtol(text, nullptr, 10);
}

[[noreturn]] void refuse_lock(int fd, const fs::path& place) {
  const int reason = errno;
  const long writer = writer_of(fd);
  ::close(fd);
  if (reason == ENOLCK || reason == EOPNOTSUPP || reason == ENOSYS)
    throw InputError(
        fmt::format("{}: lies on a file system without locks ({}), where two writers could mix; choose another place",
                    place.string(), std::strerror(reason)));
  if (reason != EWOULDBLOCK) throw InputError(fmt::format("{}: cannot be locked ({})", place.string(), std::strerror(reason)));
  throw InputError(fmt::format("{}: another process{} is writing there; wait for it or choose another place", place.string(),
                               writer > 0 ? fmt::format(" ({})", writer) : ""));
}

bool has_name(const fs::path& path, const struct stat& file) {
  struct stat named {};
  return ::lstat(path.c_str(), &named) == 0 && named.st_dev == file.st_dev && named.st_ino == file.st_ino;
}

}  // namespace

WriterLock WriterLock::of_folder(const fs::path& folder) { return {folder / ".lock", folder}; }
WriterLock WriterLock::of_file(const fs::path& file) {
  return {file.parent_path() / ("." + file.filename().string() + ".lock"), file};
}

WriterLock::WriterLock(const fs::path& lock_file, const fs::path& place) {
  const std::lock_guard guard(held_mutex);
  const fs::path path = fs::absolute(lock_file);
  for (;;) {
    const int fd = disk::open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC);
    struct stat file {};
    if (fd < 0 || ::fstat(fd, &file) != 0)
      throw InputError(fmt::format("{}: cannot be written ({})", place.string(), std::strerror(errno)));
    const std::pair key(file.st_dev, file.st_ino);
    if (const auto own = held_locks.find(key); own != held_locks.end()) {
      ::close(fd);
      ++own->second.holders;
    } else {
      if (::flock(fd, LOCK_EX | LOCK_NB) != 0) refuse_lock(fd, place);
      if (!has_name(path, file)) {  // the holder before removed it while leaving: a lock without a name keeps nobody out
        ::close(fd);
        continue;
      }
      const std::string id = fmt::format("{}\n", ::getpid());
      if (disk::truncate(fd, 0) != 0 || disk::write_at(fd, id.data(), id.size(), 0) < 0)
        errno = 0;  // only the sentence is poorer
      held_locks[key] = {path, fd, 1, ::getpid()};
    }
    device_ = file.st_dev, inode_ = file.st_ino, holds_ = true;
    return;
  }
}

WriterLock::WriterLock(WriterLock&& other) noexcept
    : device_(other.device_), inode_(other.inode_), holds_(std::exchange(other.holds_, false)) {}

WriterLock::~WriterLock() {
  if (!holds_) return;
  const std::lock_guard guard(held_mutex);
  const auto own = held_locks.find({device_, inode_});
  if (--own->second.holders > 0) return;
  if (own->second.owner == ::getpid()) disk::remove(own->second.file);
  ::close(own->second.fd);
  held_locks.erase(own);
}

}  // namespace fairway
