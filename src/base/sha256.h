// SHA-256 of bytes, streams and files: the identity of shards, tokenizers, checkpoints and artifacts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace fairway {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* data, size_t bytes);
  std::string hex();  // 64 lower-case digits; ends the stream

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);
std::string sha256_of_file(const std::filesystem::path& path);  // InputError when it cannot be read

}  // namespace fairway
