#include "comm/rank_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/disk.h"
#include "base/error.h"

namespace fairway {

struct RankMemory::Head {
  static constexpr uint64_t kMark = 0x736b6e6172796677;  // so that no other file is taken for it
  static constexpr size_t kMostWords = 8192;
  enum class Failure : uint32_t { none, being_told, told };
  struct alignas(64) Place {
    std::atomic<uint64_t> rounds{0};
  };

  uint64_t mark = kMark;
  int32_t ranks = 0, status = 0;
  std::atomic<Failure> failure{Failure::none};
  char words[kMostWords] = {};
  Watchdog::Beat beats[kMostRanks] = {};
  Place places[kMostRanks];
};

namespace {

constexpr size_t kHeadBytes = size_t{1} << 16;

size_t bytes_for(int ranks) { return kHeadBytes + 2 * RankMemory::kWindowBytes * static_cast<size_t>(ranks); }

void* mapped(int file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

RankMemory RankMemory::make(int ranks) {
  static_assert(sizeof(Head) <= kHeadBytes && std::atomic<uint64_t>::is_always_lock_free);
  const int file = memfd_create("fairway ranks", 0);
  const size_t bytes = bytes_for(ranks);
  void* memory = file >= 0 && disk::truncate(file, bytes) == 0 ? mapped(file, bytes) : nullptr;
  if (memory == nullptr)
    throw WorkError("memory that " + std::to_string(ranks) + " ranks share could not be made (" + std::strerror(errno) + ")");
  Head* head = new (memory) Head;
  head->ranks = ranks;
  return {file, head, bytes};
}

RankMemory RankMemory::find(const Launch& launch) {
  const char* text = std::getenv(kRankMemoryVariable);
  const std::string given = text == nullptr ? "" : text;
  int file = -1;
  std::from_chars(given.data(), given.data() + given.size(), file);
  struct stat facts {};
  const size_t bytes = bytes_for(launch.size);
  const bool fits = file >= 0 && launch.size <= kMostRanks && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
                    facts.st_size == static_cast<off_t>(bytes);
  void* memory = fits ? mapped(file, bytes) : nullptr;
  Head* head = static_cast<Head*>(memory);
  if (head != nullptr && head->mark == Head::kMark && head->ranks == launch.size) {
    fcntl(file, F_SETFD, FD_CLOEXEC);  // programs that a rank starts are no ranks
    return {file, head, bytes};
  }
  if (memory != nullptr) munmap(memory, bytes);
  throw InputError(launch.variable + " = " + std::to_string(launch.size) + ", but " + kRankMemoryVariable + " = " + given +
                   " is no memory of ranks; only fairway --ranks N sets these variables; unset them");
}

RankMemory::RankMemory(RankMemory&& other) noexcept
    : file_(std::exchange(other.file_, -1)), head_(std::exchange(other.head_, nullptr)), bytes_(other.bytes_) {}

RankMemory::~RankMemory() {
  if (head_ != nullptr) munmap(head_, bytes_);
}

std::atomic<uint64_t>& RankMemory::arrived(int rank) { return head_->places[rank].rounds; }

std::span<Watchdog::Beat> RankMemory::beats() { return {head_->beats, static_cast<size_t>(head_->ranks)}; }

std::byte* RankMemory::window(int rank, uint64_t round) {
  return reinterpret_cast<std::byte*>(head_) + kHeadBytes + (2 * static_cast<size_t>(rank) + round % 2) * kWindowBytes;
}

void RankMemory::leave_words(const std::string& sentence, int status) {
  auto first = Head::Failure::none;
  if (!head_->failure.compare_exchange_strong(first, Head::Failure::being_told)) return;
  const size_t length = std::min(sentence.size(), Head::kMostWords - 1);
  std::memcpy(head_->words, sentence.data(), length);
  head_->words[length] = '\0';
  head_->status = status;
  head_->failure = Head::Failure::told;
}

RankMemory::Words RankMemory::words() const {
  if (head_->failure != Head::Failure::told) return {};
  return {head_->words, head_->status};
}

}  // namespace fairway
