// A process that is asked alone: what it is handed, what it answers, and that it can open nothing.
#include "audit/isolation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/error.h"

namespace fairway {
namespace {

std::string shell(const std::string& script, std::string_view input) {
  return ask_lone_program({"/bin/sh", {"-c", script}}, input);
}

std::string failure_of(const std::string& script) {
  try {
    shell(script, "");
  } catch (const WorkError& error) {
    return error.what();
  }
  return "";
}

TEST(Isolation, AnswersWithWhatItIsHanded) {
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(shell("printf +; cat", large), large);
}

TEST(Isolation, HasNoFilesEnvironmentOrFolderOfItsParent) {
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  const int open_here = open(FAIRWAY_SOURCE_DIR "/README.md", O_RDONLY);
  EXPECT_EQ(shell("printf '+%s' \"$OMPI_COMM_WORLD_SIZE\"", ""), "");
  EXPECT_EQ(shell("printf +; pwd", ""), "/\n");
  EXPECT_EQ(shell("printf +; [ -e /proc/self/fd/" + std::to_string(open_here) + " ] && printf open; true", ""), "");
  close(open_here);
  unsetenv("OMPI_COMM_WORLD_SIZE");
}

TEST(Isolation, FailuresComeAsSentences) {
  EXPECT_NE(failure_of("printf -- '-no device'; exit 1").find("no device"), std::string::npos);
  EXPECT_NE(failure_of("exit 3").find("status 3"), std::string::npos);
  EXPECT_NE(failure_of("kill -9 $$").find("ended it"), std::string::npos);
  EXPECT_NE(failure_of("printf +; exit 1").find("status 1"), std::string::npos) << "an answer whose process failed";
  EXPECT_THROW(ask_lone_program({"/no/such/program", {}}, ""), WorkError);
}

// In a child, since the lock cannot be undone: which of its attempts succeed, as bits of its exit status.
int attempts_after_lock() {
  const pid_t child = fork();
  if (child == 0) {
    int open_before = open("/dev/null", O_WRONLY), done = 0;
    forbid_opening();
    if (open(FAIRWAY_SOURCE_DIR "/README.md", O_RDONLY) >= 0) done |= 1;
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) done |= 2;
    std::thread([&] { done |= open("/dev/null", O_RDONLY) >= 0 ? 4 : 0; }).join();
    if (write(open_before, "x", 1) == 1) done |= 8;
    _exit(done);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Isolation, OpensNothingOnceItIsForbiddenButKeepsWhatIsOpen) { EXPECT_EQ(attempts_after_lock(), 8); }

}  // namespace
}  // namespace fairway
