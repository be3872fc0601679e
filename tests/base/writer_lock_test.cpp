#include "base/writer_lock.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "base/error.h"
#include "base/file.h"

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

// A process of its own that holds a lock until it is killed.
class Holder {
 public:
  explicit Holder(const fs::path& folder) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto lock = WriterLock::of_folder(folder);
      if (::write(ends[1], "!", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char ready = 0;
    ready_ = ::read(ends[0], &ready, 1) == 1;
    ::close(ends[0]), ::close(ends[1]);
  }
  ~Holder() { kill(); }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  bool ready() const { return ready_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  bool ready_ = false;
};

TEST_F(WriterLockTest, RefusesASecondProcessAndNamesTheFirst) {
  Holder holder(folder_);
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

TEST_F(WriterLockTest, DoesNotFollowLinks) {
  write_file_atomic(folder_ / "victim", "precious");
  fs::create_symlink("victim", folder_ / ".lock");
  EXPECT_THROW(WriterLock::of_folder(folder_), InputError);
  EXPECT_EQ(read_file(folder_ / "victim"), "precious");
}

}  // namespace
}  // namespace fairway
