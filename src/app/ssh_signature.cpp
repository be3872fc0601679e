#include "app/ssh_signature.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/error.h"
#include "base/file.h"

extern char** environ;

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNamespace = "fairway-receipt";
constexpr size_t kMostAnswer = 1 << 16;

struct Answer {
  int status = 0;
  std::string text;  // what it printed, on both streams
  std::string first_line() const { return text.substr(0, text.find_first_of("\r\n")); }
};

// Reads to the end of `from`, keeping a bounded part: a full pipe would stop the other program.
std::string read_answer(int from) {
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(from, part, sizeof part)) > 0;)
    if (text.size() < kMostAnswer) text.append(part, static_cast<size_t>(got));
  return text;
}

// `terminal`: it may ask for the passphrase of a key, so its streams are ours.
Answer run_keygen(std::vector<std::string> words, const fs::path& input, bool terminal) {
  words.insert(words.begin(), "ssh-keygen");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw WorkError("ssh-keygen could not be started: no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!terminal) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  }
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, "ssh-keygen", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Answer answer;
  if (failed == 0) answer.text = read_answer(ends[0]);
  ::close(ends[0]);
  if (failed != 0)
    throw InputError(
        "ssh-keygen is not installed, which makes and checks signatures; install OpenSSH's client (openssh-client)");
  int state = 0;
  ::waitpid(child, &state, 0);
  answer.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128;
  return answer;
}

void require_file(const fs::path& path, const char* what) {
  if (!fs::is_regular_file(path)) throw InputError(fmt::format("{}: {}", path.string(), what));
}

// A name with a dash in front would be taken for a flag.
std::string as_argument(const fs::path& path) { return fs::absolute(path).string(); }

}  // namespace

fs::path signature_of(const fs::path& file) { return file.string() + ".sig"; }

void sign_file(const fs::path& file, const fs::path& key) {
  require_file(key, "no such key; expected a private key of ssh-keygen");
  remove_file(signature_of(file));  // ssh-keygen would ask
  const Answer answer = run_keygen({"-q", "-Y", "sign", "-f", as_argument(key), "-n", kNamespace, as_argument(file)}, "", true);
  if (answer.status != 0 || !fs::is_regular_file(signature_of(file)))
    throw InputError(fmt::format("{}: ssh-keygen does not sign with it: {}", key.string(), answer.first_line()));
}

std::string signer_of(const fs::path& file, const fs::path& signers) {
  const fs::path signature = signature_of(file);
  require_file(signers, "no such list of signers; expected lines of a name and a public key");
  require_file(signature, "is missing, so the receipt is not signed; `fairway audit --receipt R --sign KEY` signs it");
  const Answer found =
      run_keygen({"-Y", "find-principals", "-s", as_argument(signature), "-f", as_argument(signers)}, "/dev/null", false);
  const std::string name = found.first_line();
  if (found.status != 0 || name.empty())
    throw WorkError(fmt::format("{}: signed by nobody in {}", signature.string(), signers.string()));
  const Answer checked = run_keygen(
      {"-Y", "verify", "-f", as_argument(signers), "-I", name, "-n", kNamespace, "-s", as_argument(signature)}, file, false);
  if (checked.status != 0) throw WorkError(fmt::format("{}: is not {}'s signature of this receipt", signature.string(), name));
  return name;
}

}  // namespace fairway::app
