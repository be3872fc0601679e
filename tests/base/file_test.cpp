#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sha256.h"

namespace fairway {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("fairway_file_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(FileTest, WritesWholeFilesOrNothing) {
  const auto path = folder_ / "a";
  write_file_atomic(path, "old");
  {
    AtomicFile file(path);
    file.write("new", 3);
  }
  EXPECT_EQ(read_file(path), "old");
  AtomicFile file(path);
  file.write("....tail", 8);
  file.write_at("head", 4, 0);
  file.commit();
  EXPECT_EQ(read_file(path), "headtail");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, SaysWhatIsWrong) {
  EXPECT_THROW(read_file(folder_ / "absent"), InputError);
  EXPECT_THROW(read_file(folder_), InputError);
  write_file_atomic(folder_ / "big", "0123456789");
  EXPECT_THROW(read_file(folder_ / "big", 5), InputError);
  EXPECT_THROW(AtomicFile(folder_ / "absent" / "x"), WorkError);
}

TEST_F(FileTest, HashesAsPublished) {
  const std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(sha256_hex("abc"), abc);
  write_file_atomic(folder_ / "abc", "abc");
  EXPECT_EQ(sha256_of_file(folder_ / "abc"), abc);
}

}  // namespace
}  // namespace fairway
