#include "base/fault.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

namespace fairway::fault {
namespace {

namespace fs = std::filesystem;

enum class Kind { none, fail, full, shorten, stop, power, reorder, memory, room, device, nan };
constexpr std::array<std::string_view, 11> kKinds{"",        "fail",   "full", "short",  "stop", "power",
                                                  "reorder", "memory", "room", "device", "nan"};
constexpr std::array<std::string_view, 9> kOperations{"open",     "create", "read",   "write", "sync",
                                                      "truncate", "rename", "remove", "mkdir"};

Kind kind_of(Event event) { return static_cast<Kind>(static_cast<int>(Kind::memory) + static_cast<int>(event)); }
static_assert(static_cast<int>(Kind::nan) - static_cast<int>(Kind::memory) == static_cast<int>(Event::nan));

constexpr bool kills(Kind kind) { return kind == Kind::stop || kind == Kind::power || kind == Kind::reorder; }

struct Plan {
  Kind kind = Kind::none;
  uint64_t at = 0;
};

Plan planned() {
  const char* asked = std::getenv("FAIRWAY_FAULT");
  const std::string_view text = asked == nullptr ? "" : asked;
  const size_t colon = text.find(':');
  const auto kind = std::find(kKinds.begin() + 1, kKinds.end(), text.substr(0, colon));
  if (colon == std::string_view::npos || kind == kKinds.end()) return {};
  return {static_cast<Kind>(kind - kKinds.begin()), std::strtoull(asked + colon + 1, nullptr, 10)};
}

struct Renamed {
  fs::path from, to, kept;  // `kept` names what `to` was before; empty: nothing
};

// Standard error as it is: what tells of faults must not meet one.
void tell(const std::string& line) { (void)!::write(STDERR_FILENO, line.data(), line.size()); }

class Faults {
 public:
  ~Faults() {
    if (plan_.kind != Kind::none && owner_ == ::getpid()) tell(fmt::format("FAIRWAY_FAULT: {} operations\n", count_));
  }

  // Whether this operation is the one; for a disk that is full, also all that need room after it.
  Kind next(Operation operation, const fs::path& path) {
    const bool moves = operation == Operation::read || operation == Operation::write;
    if (plan_.kind >= Kind::memory || (plan_.kind == Kind::shorten && !moves)) return Kind::none;
    ++count_;
    const bool needs_room = operation == Operation::write || operation == Operation::truncate ||
                            operation == Operation::create || operation == Operation::make_folder ||
                            operation == Operation::sync;
    if (plan_.kind == Kind::full ? count_ < plan_.at || !needs_room : count_ != plan_.at) return Kind::none;
    if (!told_)
      tell(fmt::format("FAIRWAY_FAULT: {} at operation {}: {} {}\n", kKinds[static_cast<size_t>(plan_.kind)], count_,
                       kOperations[static_cast<size_t>(operation)], path.string()));
    told_ = true;
    return plan_.kind;
  }

  // A device that is lost stays so.
  bool strikes(Event event) {
    if (plan_.kind != kind_of(event)) return false;
    ++count_;
    if (event == Event::device ? count_ < plan_.at : count_ != plan_.at) return false;
    if (!told_) tell(fmt::format("FAIRWAY_FAULT: {} at operation {}\n", kKinds[static_cast<size_t>(plan_.kind)], count_));
    return told_ = true;
  }

  [[noreturn]] void end() {
    if (cuts_power()) forget();
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }

  void before_write(const fs::path& path) {
    struct stat info {};
    if (cuts_power() && !unsynced_.contains(path) && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      unsynced_[path] = static_cast<uint64_t>(info.st_size);
  }

  void before_rename(const fs::path& from, const fs::path& to) {
    if (!cuts_power()) return;
    Renamed renamed{fs::absolute(from), fs::absolute(to), {}};
    unsynced_.erase(renamed.to);
    if (auto moved = unsynced_.extract(renamed.from)) {
      moved.key() = renamed.to;
      unsynced_.insert(std::move(moved));
    }
    if (plan_.kind == Kind::reorder) return;
    const fs::path kept = renamed.to.parent_path() / fmt::format(".fault.{}.{}", ::getpid(), count_);
    if (::link(renamed.to.c_str(), kept.c_str()) == 0) renamed.kept = kept;
    renames_.push_back(std::move(renamed));
  }

  void after_sync(const fs::path& path) {
    if (!cuts_power()) return;
    unsynced_.erase(path);
    std::erase_if(renames_, [&](const Renamed& renamed) {
      if (renamed.to.parent_path() != path) return false;
      if (!renamed.kept.empty()) ::unlink(renamed.kept.c_str());
      return true;
    });
  }

  std::mutex mutex;

 private:
  bool cuts_power() const { return plan_.kind == Kind::power || plan_.kind == Kind::reorder; }

  // The newest first: a name may have changed twice.
  void forget() {
    for (const auto& [path, bytes] : unsynced_) (void)!::truncate(path.c_str(), static_cast<off_t>(bytes));
    for (auto renamed = renames_.rbegin(); renamed != renames_.rend(); ++renamed) {
      (void)!::rename(renamed->to.c_str(), renamed->from.c_str());
      if (!renamed->kept.empty()) (void)!::rename(renamed->kept.c_str(), renamed->to.c_str());
    }
  }

  const Plan plan_ = planned();
  const pid_t owner_ = ::getpid();
  uint64_t count_ = 0;
  bool told_ = false;
  std::map<fs::path, uint64_t> unsynced_;  // bytes that were synced
  std::vector<Renamed> renames_;
};

Faults& faults() {
  static Faults one;
  return one;
}

bool fails(Kind kind) {
  if (kills(kind)) faults().end();
  errno = kind == Kind::full ? ENOSPC : EIO;
  return kind == Kind::fail || kind == Kind::full;
}

}  // namespace

fs::path path_of(int fd) {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored);
}

const bool armed = planned().kind != Kind::none;

bool passes(Operation operation, const fs::path& path) {
  const std::lock_guard guard(faults().mutex);
  return !fails(faults().next(operation, path));
}

bool strikes(Event event) {
  const std::lock_guard guard(faults().mutex);
  return faults().strikes(event);
}

size_t share_of(Operation operation, int fd, size_t bytes, ssize_t (*move)(void* context, size_t bytes), void* context) {
  const std::lock_guard guard(faults().mutex);
  const fs::path path = path_of(fd);
  if (operation == Operation::write) faults().before_write(path);
  const Kind kind = faults().next(operation, path);
  if (kind == Kind::shorten) return std::max<size_t>(1, bytes / 2);
  if (kills(kind) && bytes > 1) move(context, bytes / 2);
  return fails(kind) ? 0 : bytes;
}

void before_rename(const fs::path& from, const fs::path& to) {
  const std::lock_guard guard(faults().mutex);
  faults().before_rename(from, to);
}

void after_sync(const fs::path& path) {
  const std::lock_guard guard(faults().mutex);
  faults().after_sync(path);
}

}  // namespace fairway::fault
