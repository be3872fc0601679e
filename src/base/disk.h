// Every file operation of this program. Names and results are the system's, and errno says why one failed; base/file.h has
// sentences. The layer is here so that a test can make any of them fail (base/fault.h); tests/layering looks for others.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <system_error>

namespace fairway::disk {

int open(const std::filesystem::path& path, int flags, mode_t mode = 0644);
ssize_t read(int fd, void* out, size_t bytes);
ssize_t read_at(int fd, void* out, size_t bytes, uint64_t offset);
ssize_t write(int fd, const void* data, size_t bytes);
ssize_t write_at(int fd, const void* data, size_t bytes, uint64_t offset);
int sync(int fd);
int truncate(int fd, uint64_t bytes);

std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to);
std::error_code remove(const std::filesystem::path& path);  // a file or an empty folder; one that is absent is no error
std::error_code remove_all(const std::filesystem::path& path);
std::error_code make_folders(const std::filesystem::path& path);

}  // namespace fairway::disk
