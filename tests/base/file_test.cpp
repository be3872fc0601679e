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

TEST_F(FileTest, TwoWritersOfOneFileDoNotMix) {
  const auto path = folder_ / "a";
  AtomicFile first(path), second(path);
  first.write("first", 5);
  second.write("second", 6);
  first.commit();
  EXPECT_EQ(read_file(path), "first");
  second.commit();
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, LinksWithATemporaryNameAreNotFollowed) {
  write_file_atomic(folder_ / "victim", "precious");
  for (const char* name : {"a.partial", ".a.partial", ".a..partial"}) std::filesystem::create_symlink("victim", folder_ / name);
  const std::string own = "." + std::string("a.") + std::to_string(::getpid()) + ".";
  for (int i = 0; i < 100; ++i) std::filesystem::create_symlink("victim", folder_ / (own + std::to_string(i) + ".partial"));
  write_file_atomic(folder_ / "a", "new");
  EXPECT_EQ(read_file(folder_ / "victim"), "precious");
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder_ / "a"));
}

TEST_F(FileTest, WhatAKilledWriterLeftIsRemoved) {
  const auto path = folder_ / "a";
  write_file_atomic(folder_ / ".a.99999999.0.partial", "left by a kill");
  write_file_atomic(folder_ / "a.partial", "the user's own");
  AtomicFile living(path);
  living.write("living", 6);
  write_file_atomic(path, "whole");
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".a.99999999.0.partial"));
  EXPECT_EQ(read_file(folder_ / "a.partial"), "the user's own");
  living.commit();
  EXPECT_EQ(read_file(path), "living");
}

TEST_F(FileTest, TakesLongNames) {
  const auto path = folder_ / std::string(255, 'n');
  write_file_atomic(path, "text");
  EXPECT_EQ(read_file(path), "text");
}

TEST(BareNames, StayInTheirFolder) {
  for (const char* name : {"a", "fineweb_train_000000.bin", "..a", "a..b", ".hidden", "a b"})
    EXPECT_TRUE(is_bare_name(name)) << name;
  for (const char* name : {"", ".", "..", "a/b", "/a", "../a", "a/", "a/../b"}) EXPECT_FALSE(is_bare_name(name)) << name;
  EXPECT_FALSE(is_bare_name(std::string_view("a\0b", 3)));
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
