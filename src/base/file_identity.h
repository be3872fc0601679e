// Which bytes were read: taken from the buffer that was used, never by reading the file a second time.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/sha256.h"

namespace fairway {

struct FileIdentity {
  std::filesystem::path path;
  uint64_t bytes = 0;
  std::string sha256;
};

inline FileIdentity identity_of(const std::filesystem::path& path, std::string_view bytes) {
  return {path, bytes.size(), sha256_hex(bytes)};
}

}  // namespace fairway
