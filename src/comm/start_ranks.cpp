#include "comm/start_ranks.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/rank_failure.h"
#include "comm/rank_memory.h"

namespace fairway {
namespace {

static_assert(kMostOwnRanks == RankMemory::kMostRanks);

// What a person or a system sends to end or to stop the run, and what tells that a rank has ended.
constexpr std::array kWaited{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGTSTP, SIGCHLD};
constexpr double kGrace = 10;  // seconds from the first rank's end to the others', who are then killed

std::string this_program() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 && length < PATH_MAX ? std::string(path, static_cast<size_t>(length)) : "/proc/self/exe";
}

// Threads of a device's library do not block what this one waits for, and would take it: they hand it on.
pthread_t waiting_thread;
void hand_on(int signal) { pthread_kill(waiting_thread, signal); }

class Family {
 public:
  Family(int ranks, const std::vector<std::string>& words);
  ~Family();
  int wait();

 private:
  void restore_signals() const;
  void start(int rank, const std::vector<char*>& words);
  void reap();
  void obey(int signal);
  void send(int signal) const;
  bool all_ended() const {
    return std::all_of(pids_.begin(), pids_.end(), [](pid_t pid) { return pid == 0; });
  }
  int result() const;

  struct End {
    int rank, state;
    pid_t pid;
  };
  RankMemory memory_;
  std::string program_ = this_program();
  sigset_t waited_{}, before_{};
  std::array<struct sigaction, kWaited.size()> actions_before_{};
  std::vector<pid_t> pids_;   // by rank; 0 once it has ended
  std::optional<End> first_;  // that did not end with 0
  int asked_ = 0;             // the last signal that was passed on
  double deadline_ = 0;       // for the rest, once one has failed
  bool ended_rest_ = false;   // they did not end by themselves
};

Family::Family(int ranks, const std::vector<std::string>& words) : memory_(RankMemory::make(ranks)) {
  waiting_thread = pthread_self();
  sigemptyset(&waited_);
  for (const int signal : kWaited) sigaddset(&waited_, signal);
  pthread_sigmask(SIG_BLOCK, &waited_, &before_);
  struct sigaction handing_on {};
  handing_on.sa_handler = hand_on;
  handing_on.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kWaited.size(); ++i) {
    sigaction(kWaited[i], &handing_on, &actions_before_[i]);
    const bool stays = kWaited[i] != SIGCHLD && actions_before_[i].sa_handler == SIG_IGN;  // nohup
    if (stays) sigaction(kWaited[i], &actions_before_[i], nullptr);
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  for (int rank = 0; rank < ranks; ++rank) start(rank, arguments);
}

Family::~Family() {
  send(SIGKILL);
  for (const pid_t pid : pids_)
    if (pid != 0) waitpid(pid, nullptr, 0);
  restore_signals();
}

void Family::restore_signals() const {
  for (size_t i = 0; i < kWaited.size(); ++i) sigaction(kWaited[i], &actions_before_[i], nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// Between fork and exec a process with threads may call only what signal handlers may: everything is made before.
void Family::start(int rank, const std::vector<char*>& words) {
  const auto variable = [](const char* name, auto value) { return std::string(name) + "=" + std::to_string(value); };
  std::array variables{variable(kRankCountVariable, memory_.beats().size()), variable(kRankVariable, rank),
                       variable(kRankMemoryVariable, memory_.file())};
  std::vector<char*> environment;  // the first of a name counts
  for (std::string& entry : variables) environment.push_back(entry.data());
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw WorkError("rank " + std::to_string(rank) + " could not be started (" + std::strerror(errno) + ")");
  if (pid > 0) {
    pids_.push_back(pid);
    return;
  }
  setpgid(0, 0);  // a terminal's Ctrl-C comes once, from the parent
  std::signal(SIGTTOU, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  if (rank != 0) {
    const int none = open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
      if (dup2(none, stream) < 0) close(stream);  // a root without devices
    close(none);
  }
  restore_signals();
  execve(program_.c_str(), words.data(), environment.data());
  _exit(1);
}

void Family::send(int signal) const {
  for (const pid_t pid : pids_)
    if (pid != 0) kill(pid, signal);
}

void Family::reap() {
  int state = 0;
  for (size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] == 0 || waitpid(pids_[rank], &state, WNOHANG) != pids_[rank]) continue;
    const End end{static_cast<int>(rank), state, std::exchange(pids_[rank], 0)};
    if (state == 0 || first_) continue;
    first_ = end;
    const bool killed = WIFSIGNALED(state) && WTERMSIG(state) != asked_;
    deadline_ = seconds_now() + (killed || memory_.words().any() ? 0 : kGrace);
  }
}

void Family::obey(int signal) {
  if (signal == SIGCHLD) return;
  if (signal == SIGTSTP) {
    send(SIGSTOP);
    raise(SIGSTOP);
    return send(SIGCONT);
  }
  asked_ = signal;
  send(signal);
}

int Family::wait() {
  while (reap(), !all_ended()) {
    if (first_ && seconds_now() >= deadline_) {
      send(SIGKILL);
      ended_rest_ = true;
    }
    const timespec moment{0, 200'000'000};  // a rank that cannot be killed at once must not hide the next signal
    const int signal = first_ ? sigtimedwait(&waited_, nullptr, &moment) : sigwaitinfo(&waited_, nullptr);
    if (signal > 0) obey(signal);
  }
  return result();
}

int Family::result() const {
  const RankMemory::Words words = memory_.words();
  if (words.any()) throw RankFailure(words.sentence, words.status);
  if (!first_) return 0;
  const std::string who = "fairway: rank " + std::to_string(first_->rank) + " (process " + std::to_string(first_->pid) + ") ";
  if (WIFEXITED(first_->state)) {
    const int status = WEXITSTATUS(first_->state);
    if (!ended_rest_) return status;  // they all ended, and rank 0 has said what there was to say
    throw RankFailure(who + "ended with status " + std::to_string(status) + ", the others did not; the run ends", status);
  }
  const int signal = WTERMSIG(first_->state);
  if (signal == asked_) {  // before there was anything to save: as one process would have ended
    std::signal(signal, SIG_DFL);
    raise(signal);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  throw RankFailure(who + "was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + "); the run ends", 1);
}

}  // namespace

int start_ranks(int ranks, const std::vector<std::string>& words) {
  FAIRWAY_ASSERT(ranks >= 2 && ranks <= kMostOwnRanks, "a number of ranks that nobody checked");
  return Family(ranks, words).wait();
}

}  // namespace fairway
