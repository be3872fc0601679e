#include "fetch/partial_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace fairway::fetch {
namespace {

[[noreturn]] void fail_partial(const std::filesystem::path& path, const char* doing) {
  throw WorkError(fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(errno)));
}

}  // namespace

PartialFile::PartialFile(const std::filesystem::path& place)
    : place_(place), partial_(place.parent_path() / ("." + place.filename().string() + ".fetching")) {
  fd_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  struct stat info {};
  if (fd_ < 0 || ::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (fd_ >= 0) ::close(fd_), errno = EEXIST;
    fail_partial(partial_, "be written");
  }
  std::vector<char> part(size_t{1} << 20);
  for (ssize_t got = 0; (got = ::read(fd_, part.data(), part.size())) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_partial(partial_, "be read");
    hash_.update(part.data(), static_cast<size_t>(got));
    bytes_ += static_cast<uint64_t>(got);
  }
}

PartialFile::~PartialFile() {
  ::close(fd_);
  if (bytes_ == 0) ::unlink(partial_.c_str());  // nothing to go on from
}

void PartialFile::append(std::string_view part) {
  for (size_t done = 0; done < part.size();) {
    const ssize_t put = ::pwrite(fd_, part.data() + done, part.size() - done, static_cast<off_t>(bytes_ + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_partial(partial_, "write");
    done += static_cast<size_t>(put);
  }
  hash_.update(part.data(), part.size());
  bytes_ += part.size();
}

void PartialFile::restart() {
  if (::ftruncate(fd_, 0) != 0) fail_partial(partial_, "be emptied");
  bytes_ = 0;
  hash_ = Sha256();
}

std::string PartialFile::sha256() { return hash_.hex(); }

void PartialFile::commit() {
  if (::fsync(fd_) != 0) fail_partial(partial_, "write");
  if (::rename(partial_.c_str(), place_.c_str()) != 0) fail_partial(place_, "be replaced");
}

}  // namespace fairway::fetch
