// One writer at a time in a folder, or of a file: an advisory lock on a small file there that holds the writer's process id. It
// ends with the process, however that ends. A process may take its own lock again: a command made of others holds it for all.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace fairway {

class WriterLock {
 public:
  // InputError naming the place and, if known, the process that writes there.
  static WriterLock of_folder(const std::filesystem::path& folder);  // .lock in it; the folder is there
  static WriterLock of_file(const std::filesystem::path& file);      // .NAME.lock beside it

  ~WriterLock();
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&&) = delete;

 private:
  WriterLock(const std::filesystem::path& lock_file, const std::filesystem::path& place);

  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool holds_ = false;
};

}  // namespace fairway
