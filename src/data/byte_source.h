// Bytes of a file as they are, or out of gzip, xz or Zstandard, told by the file's first bytes and not by its name. Memory is
// bounded whatever the file says; a broken or shortened stream is an InputError naming file and compression, and so is a file
// named as compressed (.gz, .xz, .zst) that is not.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

namespace fairway::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual size_t read(char* out, size_t bytes) = 0;  // 0 at the end only
};

std::unique_ptr<ByteSource> open_source(const std::filesystem::path& path);

}  // namespace fairway::data
