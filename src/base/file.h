// Files: reading with sentences for errors, and writing so that a reader sees the old file or the whole new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fairway {

// A regular file open for reading. Absent or unreadable: InputError naming the path and the system's reason.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  int descriptor() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const;
  size_t read_some(void* out, size_t bytes) const;                 // 0 at the end
  size_t read_at(void* out, size_t bytes, uint64_t offset) const;  // fewer than asked only at the end

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Writes beside `path` under a temporary name of its own, which nobody else writes to and no link leads away from; commit()
// syncs and renames. Without commit nothing of it stays, and what a killed process left is removed by the next writer of
// `path`. Failures (full disk, no permission) are WorkErrors naming the path.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void write(const void* data, size_t bytes);
  void write_at(const void* data, size_t bytes, uint64_t offset);  // the place of write() does not move
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  int fd_ = -1;
};

// Text added to the end of a file. Failures are WorkErrors naming the path; some of the text may be written.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;

  void write(std::string_view text);
  void sync();

 private:
  [[noreturn]] void fail_append() const;

  std::filesystem::path path_;
  int fd_ = -1;
};

// A name that stays in its folder: not empty, ".", ".." or a path. Lists of files in a folder may hold only such.
bool is_bare_name(std::string_view name);

std::string read_file(const std::filesystem::path& path, uint64_t limit = uint64_t{1} << 32);
std::vector<std::string> read_lines(const std::filesystem::path& path);  // without their ends; the last may lack its own
void move_file(const std::filesystem::path& from, const std::filesystem::path& to);
void remove_file(const std::filesystem::path& path);  // or a folder with all in it; one that is absent is no error
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);

}  // namespace fairway
