#include "base/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fault.h"

namespace fairway::disk {
namespace {

using fault::Operation;

std::error_code last_error() { return {errno, std::generic_category()}; }

template <class Move>
ssize_t moved(Operation operation, int fd, size_t bytes, Move move) {
  if (!fault::armed) return move(bytes);
  const auto call = [](void* context, size_t part) { return (*static_cast<Move*>(context))(part); };
  const size_t share = fault::share_of(operation, fd, bytes, call, &move);
  return share == 0 && bytes > 0 ? -1 : move(share);
}

}  // namespace

int open(const std::filesystem::path& path, int flags, mode_t mode) {
  if (fault::armed && !fault::passes((flags & O_CREAT) != 0 ? Operation::create : Operation::open, path)) return -1;
  return ::open(path.c_str(), flags, mode);
}

ssize_t read(int fd, void* out, size_t bytes) {
  return moved(Operation::read, fd, bytes, [&](size_t part) { return ::read(fd, out, part); });
}
ssize_t read_at(int fd, void* out, size_t bytes, uint64_t offset) {
  return moved(Operation::read, fd, bytes, [&](size_t part) { return ::pread(fd, out, part, static_cast<off_t>(offset)); });
}
ssize_t write(int fd, const void* data, size_t bytes) {
  return moved(Operation::write, fd, bytes, [&](size_t part) { return ::write(fd, data, part); });
}
ssize_t write_at(int fd, const void* data, size_t bytes, uint64_t offset) {
  return moved(Operation::write, fd, bytes, [&](size_t part) { return ::pwrite(fd, data, part, static_cast<off_t>(offset)); });
}

int sync(int fd) {
  if (!fault::armed) return ::fsync(fd);
  const std::filesystem::path path = fault::path_of(fd);
  if (!fault::passes(Operation::sync, path)) return -1;
  const int result = ::fsync(fd);
  if (result == 0) fault::after_sync(path);
  return result;
}

int truncate(int fd, uint64_t bytes) {
  if (fault::armed && !fault::passes(Operation::truncate, fault::path_of(fd))) return -1;
  return ::ftruncate(fd, static_cast<off_t>(bytes));
}

std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (fault::armed) {
    if (!fault::passes(Operation::rename, to)) return last_error();
    fault::before_rename(from, to);
  }
  return ::rename(from.c_str(), to.c_str()) == 0 ? std::error_code() : last_error();
}

std::error_code remove(const std::filesystem::path& path) {
  if (fault::armed && !fault::passes(Operation::remove, path)) return last_error();
  std::error_code error;
  std::filesystem::remove(path, error);
  return error;
}

std::error_code remove_all(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(path, error))) return disk::remove(path);
  for (auto entry = std::filesystem::directory_iterator(path, error); !error && entry != std::filesystem::directory_iterator();
       entry.increment(error))
    if (const std::error_code inside = disk::remove_all(entry->path())) return inside;
  return error ? error : disk::remove(path);
}

std::error_code make_folders(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {};
  if (fault::armed && !fault::passes(Operation::make_folder, path)) return last_error();
  std::filesystem::create_directories(path, error);
  return error;
}

}  // namespace fairway::disk
