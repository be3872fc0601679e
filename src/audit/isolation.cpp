#include "audit/isolation.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace fairway {
namespace {

// Answers begin with one of these.
constexpr char kMade = '+', kFailed = '-';

[[noreturn]] void cannot(const std::string& what, int error) {
  throw WorkError("the isolated run: " + what + " (" + std::strerror(error) + ")");
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close_now(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void close_now() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

// Where libraries and devices are found and which instructions are used; nothing else of the environment goes along, so that
// the process is no rank of a launch either.
std::vector<std::string> small_environment() {
  std::vector<std::string> out;
  for (const char* name : {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "FAIRWAY_ISA"}) {
    if (const char* value = std::getenv(name)) out.push_back(std::string(name) + "=" + value);
  }
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

pid_t start(const LoneProgram& call, int input, int output) {
  std::vector<std::string> words{call.program.string()}, variables = small_environment();
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawn_file_actions_addchdir_np(&actions, "/");
  pid_t child = -1;
  const int error =
      posix_spawn(&child, words.front().c_str(), &actions, nullptr, pointers_to(words).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) cannot(call.program.string() + " does not start", error);
  return child;
}

}  // namespace

std::string ask_lone_program(const LoneProgram& call, std::string_view input) {
  Descriptor memory(memfd_create("fairway isolated run", MFD_CLOEXEC));  // needs no reader while it is filled
  if (memory.get() < 0) cannot("no memory for its input", errno);
  if (!write_all(memory.get(), input) || lseek(memory.get(), 0, SEEK_SET) != 0) cannot("its input was not written", errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) cannot("no pipe", errno);
  Descriptor answers(ends[0]), theirs(ends[1]);
  const pid_t child = start(call, memory.get(), theirs.get());
  theirs.close_now();
  const std::string answer = read_all(answers.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!answer.empty() && answer.front() == kMade && WIFEXITED(status) && WEXITSTATUS(status) == 0) return answer.substr(1);
  if (!answer.empty() && answer.front() == kFailed) throw WorkError("the isolated run failed: " + answer.substr(1));
  throw WorkError("the isolated run failed: " + (WIFSIGNALED(status)
                                                     ? std::string("signal ") + strsignal(WTERMSIG(status)) + " ended it"
                                                     : "it ended with status " + std::to_string(WEXITSTATUS(status))));
}

int answer_alone(const std::function<std::string(const std::string& input)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string answer(1, kMade);
  int status = 0;
  try {
    const std::string input = read_all(STDIN_FILENO);
    close(STDIN_FILENO);
    answer += work(input);
  } catch (const std::exception& error) {
    answer = kFailed + std::string(error.what());
    status = 1;
  }
  return write_all(STDOUT_FILENO, answer) ? status : 1;
}

void forbid_opening() {
  constexpr uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;
  constexpr uint32_t kOpeners[] = {
#ifdef SYS_open  // not on every processor
      SYS_open,   SYS_creat,
#endif
      SYS_openat, SYS_openat2, SYS_open_by_handle_at, SYS_socket, SYS_connect, SYS_execve, SYS_execveat};
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const uint32_t call : kOpeners) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, kRefused));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    cannot("this system cannot forbid a process to open files", errno);
}

}  // namespace fairway
