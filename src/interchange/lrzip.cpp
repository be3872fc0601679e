#include "interchange/lrzip.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace fairway::interchange {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!left.empty()) {
    const size_t colon = std::min(left.find(':'), left.size());
    const std::string folder(left.substr(0, colon));
    left.remove_prefix(std::min(colon + 1, left.size()));
    if (!folder.starts_with('/')) continue;  // a program of the current folder is not one of the system
    const std::string candidate = folder + "/" + name;
    if (fs::is_regular_file(candidate) && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

// Removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "fairway-lrzip-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw WorkError("no temporary folder could be made for lrzip: " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// Between fork and exec: nothing that allocates or takes a lock.
[[noreturn]] void become(char* const* words, char* const* variables, const char* folder, rlim_t most_bytes) {
  setpgid(0, 0);
  const rlimit size{most_bytes, most_bytes},
      seconds{static_cast<rlim_t>(kMostLrzipSeconds), static_cast<rlim_t>(kMostLrzipSeconds)}, no_core{0, 0};
  setrlimit(RLIMIT_FSIZE, &size);
  setrlimit(RLIMIT_CPU, &seconds);
  setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0 || chdir(folder) != 0) _exit(127);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, stream);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  execve(words[0], words, variables);
  _exit(127);
}

// Its state as waitpid gives it; absent when it took too long and was killed.
std::optional<int> run(std::vector<std::string> words, const std::string& folder, uint64_t most_bytes) {
  std::vector<std::string> variables{"HOME=" + folder, "TMPDIR=" + folder, "TMP=" + folder, "LRZIP=NOCONFIG",
                                     "PATH=/usr/bin:/bin"};
  std::vector<char*> arguments, environment;
  for (std::string& word : words) arguments.push_back(word.data());
  for (std::string& variable : variables) environment.push_back(variable.data());
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw WorkError("lrzip could not be started");
  if (child == 0) become(arguments.data(), environment.data(), folder.c_str(), most_bytes);
  const double begin = seconds_now();
  int state = 0;
  while (waitpid(child, &state, WNOHANG) == 0) {
    if (seconds_now() - begin > kMostLrzipSeconds) {
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
      waitpid(child, &state, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return state;
}

}  // namespace

std::string unlrzip(std::string_view coded, uint64_t bytes, const std::string& where) {
  const std::optional<std::string> program = find_program("lrzip");
  if (!program)
    throw InputError(
        where + ": its matrices are compressed with lrzip, which is not installed; install the package lrzip and try again");
  const TemporaryFolder folder;
  const std::string in = folder.file("in.lrz"), out = folder.file("out");
  write_file_atomic(in, coded);
  const std::optional<int> state = run({*program, "-d", "-q", "-o", out, in}, folder.path(), bytes + 4096);
  if (!state) throw InputError(fmt::format("{}: lrzip took more than {} s and was ended", where, kMostLrzipSeconds));
  if (!WIFEXITED(*state) || WEXITSTATUS(*state) != 0 || !fs::is_regular_file(out))
    throw InputError(fmt::format("{}: lrzip could not decompress it to {} bytes (status {})", where, bytes,
                                 WIFEXITED(*state) ? WEXITSTATUS(*state) : -WTERMSIG(*state)));
  if (const uint64_t made = fs::file_size(out); made != bytes)
    throw InputError(fmt::format("{}: lrzip gives {} bytes; expected {}", where, made, bytes));
  return read_file(out, bytes);
}

}  // namespace fairway::interchange
