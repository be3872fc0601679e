#include "app/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace {

constexpr unsigned kLongest = 120;  // seconds

std::string contents(int fd) {
  std::string text(static_cast<size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  text.resize(static_cast<size_t>(::pread(fd, text.data(), text.size(), 0)));
  return text;
}

}  // namespace

std::string Outcome::text() const {
  return "status " + std::to_string(status) + ", signal " + std::to_string(signal) + "\n-- stdout\n" + out + "-- stderr\n" +
         err;
}

Child::Child(const Args& args, const Args& launcher)
    : out_(memfd_create("out", MFD_CLOEXEC)), err_(memfd_create("err", MFD_CLOEXEC)) {
  std::vector<char*> argv;
  std::string program = FAIRWAY_PROGRAM;
  for (const std::string& arg : launcher) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(program.data());
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, SIG_DFL);  // shells start what is in the background without SIGINT
  ::alarm(kLongest);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(out_, STDOUT_FILENO);
  ::dup2(err_, STDERR_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

Child::~Child() {
  if (!ended_) {
    send(SIGKILL);
    ::waitpid(pid_, &state_, 0);
  }
  ::close(out_);
  ::close(err_);
}

void Child::send(int signal) const {
  if (!ended_) ::kill(pid_, signal);
}

bool Child::running() {
  if (!ended_) ended_ = ::waitpid(pid_, &state_, WNOHANG) == pid_;
  return !ended_;
}

Outcome Child::wait() {
  if (!ended_) ::waitpid(pid_, &state_, 0);
  ended_ = true;
  Outcome outcome;
  if (WIFEXITED(state_)) outcome.status = WEXITSTATUS(state_);
  if (WIFSIGNALED(state_)) outcome.signal = WTERMSIG(state_);
  outcome.out = contents(out_);
  outcome.err = contents(err_);
  return outcome;
}

Outcome run_program(const Args& args) { return Child(args).wait(); }

nlohmann::json run_json(Args args) {
  args.push_back("--json");
  const Outcome outcome = run_program(args);
  EXPECT_EQ(outcome.status, 0) << outcome.text();
  nlohmann::json result = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_TRUE(result.is_object()) << outcome.text();
  return result.is_object() ? result : nlohmann::json::object();
}
