#include "fetch/partial_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"

namespace fairway::fetch {
namespace {

[[noreturn]] void fail_partial(const std::filesystem::path& path, const char* doing) {
  throw WorkError(fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(errno)));
}

}  // namespace

PartialFile::PartialFile(const std::filesystem::path& place)
    : place_(place), partial_(place.parent_path() / ("." + place.filename().string() + ".fetching")) {
  fd_ = disk::open(partial_, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info {};
  if (fd_ < 0 || ::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (fd_ >= 0) ::close(fd_), errno = EEXIST;
    fail_partial(partial_, "be written");
  }
  std::vector<char> part(size_t{1} << 20);
  for (ssize_t got = 0; (got = disk::read(fd_, part.data(), part.size())) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_partial(partial_, "be read");
    hash_.update(part.data(), static_cast<size_t>(got));
    bytes_ += static_cast<uint64_t>(got);
  }
}

PartialFile::~PartialFile() {
  ::close(fd_);
  if (bytes_ == 0) disk::remove(partial_);  // nothing to go on from
}

void PartialFile::append(std::string_view part) {
  for (size_t done = 0; done < part.size();) {
    const ssize_t put = disk::write_at(fd_, part.data() + done, part.size() - done, bytes_ + done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_partial(partial_, "write");
    done += static_cast<size_t>(put);
  }
  hash_.update(part.data(), part.size());
  bytes_ += part.size();
}

void PartialFile::restart() {
  if (disk::truncate(fd_, 0) != 0) fail_partial(partial_, "be emptied");
  bytes_ = 0;
  hash_ = Sha256();
}

std::string PartialFile::sha256() { return hash_.hex(); }

void PartialFile::commit() {
  if (disk::sync(fd_) != 0) fail_partial(partial_, "write");
  move_file(partial_, place_);
}

}  // namespace fairway::fetch
