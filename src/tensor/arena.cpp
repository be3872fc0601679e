#include "tensor/arena.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace fairway {
namespace {

// Where every arena begins, so that an address leads back to its arena.
struct Registry {
  std::mutex mutex;
  std::map<const std::byte*, Arena*> arenas;
};
Registry& registry() {
  static Registry all;
  return all;
}

void enter(const std::byte* base, Arena* arena) {
  const std::lock_guard lock(registry().mutex);
  registry().arenas[base] = arena;
}

}  // namespace

Arena::Arena(std::string name, size_t bytes, Filled filled)
    : name_(std::move(name)), capacity_(align_up(bytes)), filled_(filled) {
  if (capacity_ == 0) return;
  // Anonymous pages come zeroed and are only backed once touched, so a large arena costs nothing at start-up.
  void* pages = mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    throw WorkError("arena '" + name_ + "' needs " + std::to_string(capacity_ >> 20) +
                    " MiB, more than this machine can give; use a smaller batch or model");
  }
  madvise(pages, capacity_, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(pages);
  enter(data_, this);
}

Arena::Arena(Arena&& other) noexcept
    : name_(std::move(other.name_)),
      data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      used_(std::exchange(other.used_, 0)),
      filled_(other.filled_),
      parts_(std::move(other.parts_)),
      device_copy_(std::move(other.device_copy_)) {
  if (data_ != nullptr) enter(data_, this);
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  {
    const std::lock_guard lock(registry().mutex);
    registry().arenas.erase(data_);
  }
  munmap(data_, capacity_);
}

Arena* Arena::containing(const std::byte* address) {
  const std::lock_guard lock(registry().mutex);
  auto next = registry().arenas.upper_bound(address);
  if (next == registry().arenas.begin()) return nullptr;
  Arena* arena = std::prev(next)->second;
  return address < arena->data_ + arena->capacity_ ? arena : nullptr;
}

Tensor Arena::make(std::string_view name, Spec spec) {
  const size_t bytes = align_up(spec.bytes());
  FAIRWAY_ASSERT(used_ + bytes <= capacity_, "arena '" + name_ + "' is too small for '" + std::string(name) + "'");
  parts_.push_back({std::string(name), spec, used_});
  Tensor out = make_view(data_ + used_, spec);
  used_ += bytes;
  return out;
}

void Arena::poison() {
  if (data_ != nullptr) std::memset(data_, 0xFF, capacity_);
}

}  // namespace fairway
