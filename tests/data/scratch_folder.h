// A folder of its own for each test, and shards whose tokens tell where they came from.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/shard.h"

class ScratchFolder {
 public:
  ScratchFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + "_" + test->name() + "_" + std::to_string(::getpid());
    for (char& c : name)
      if (c == '/') c = '_';
    path_ = std::filesystem::path(testing::TempDir()) / ("fairway_" + name);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// A file written without waiting for the disk, which is what makes many small tests quick.
inline void put_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Token i of shard s is 2 + (s * 977 + i) % 1000, with a document start (1) every `document` tokens.
inline uint16_t expected_token(size_t shard, uint64_t i, uint64_t document = 0) {
  if (document > 0 && i % document == 0) return 1;
  return static_cast<uint16_t>(2 + (shard * 977 + i) % 1000);
}

inline void write_numbered_shards(const std::filesystem::path& folder, const std::vector<uint64_t>& sizes,
                                  uint64_t document = 0) {
  for (size_t s = 0; s < sizes.size(); ++s) {
    std::vector<uint16_t> tokens(sizes[s]);
    for (uint64_t i = 0; i < sizes[s]; ++i) tokens[i] = expected_token(s, i, document);
    const std::string digits = std::to_string(s);
    fairway::data::write_shard(folder / ("fineweb_train_" + std::string(6 - digits.size(), '0') + digits + ".bin"), tokens);
  }
}
