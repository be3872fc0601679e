#include "base/writer_lock.h"

#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/lock_holder.h"

namespace {

int missing_locks = 0;  // the error of a file system without locks; 0: this one has them

}  // namespace

// In the place of the library's.
extern "C" int flock(int fd, int operation) noexcept {
  if (missing_locks == 0) return static_cast<int>(::syscall(SYS_flock, fd, operation));
  errno = missing_locks;
  return -1;
}

namespace fairway {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class WriterLockTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fairway_lock_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(WriterLockTest, RefusesASecondProcessAndNamesTheFirst) {
  LockHolder holder(folder_);
  ASSERT_TRUE(holder.ready());
  try {
    WriterLock::of_folder(folder_);
    FAIL() << "two processes hold one lock";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder_.string()));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(holder.pid())));
  }
  holder.kill();
  EXPECT_NO_THROW(WriterLock::of_folder(folder_)) << "the lock dies with its process";
}

TEST_F(WriterLockTest, OneProcessMayTakeItAgainAndLeavesNothing) {
  std::optional<WriterLock> outer(WriterLock::of_folder(folder_));
  { const WriterLock inner = WriterLock::of_folder(folder_); }
  EXPECT_TRUE(fs::exists(folder_ / ".lock")) << "the inner one has not ended the outer one";
  EXPECT_EQ(read_file(folder_ / ".lock"), std::to_string(::getpid()) + "\n");
  const WriterLock other = WriterLock::of_file(folder_ / "file");
  EXPECT_TRUE(fs::exists(folder_ / ".file.lock"));
  outer.reset();
  EXPECT_FALSE(fs::exists(folder_ / ".lock"));
}

TEST_F(WriterLockTest, AForkedChildDoesNotEndIt) {
  std::optional<WriterLock> lock(WriterLock::of_folder(folder_));
  const pid_t child = ::fork();
  if (child == 0) {
    lock.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(folder_ / ".lock"));
}

TEST_F(WriterLockTest, AFileSystemWithoutLocksIsNamedAsSuch) {
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
    missing_locks = error;
    try {
      WriterLock::of_folder(folder_);
      ADD_FAILURE() << "two writers may mix there";
    } catch (const InputError& refused) {
      EXPECT_THAT(refused.what(), HasSubstr(folder_.string() + ": lies on a file system without locks"));
    }
    missing_locks = 0;
  }
  EXPECT_NO_THROW(WriterLock::of_folder(folder_));
}

TEST_F(WriterLockTest, DoesNotFollowLinks) {
  write_file_atomic(folder_ / "victim", "precious");
  fs::create_symlink("victim", folder_ / ".lock");
  EXPECT_THROW(WriterLock::of_folder(folder_), InputError);
  EXPECT_EQ(read_file(folder_ / "victim"), "precious");
}

}  // namespace
}  // namespace fairway
