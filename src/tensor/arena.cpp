#include "tensor/arena.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "base/error.h"
#include "base/fault.h"

namespace fairway {
namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

Memory::Memory(const std::string& name, size_t bytes) : id_(next_id()), bytes_(align_up(bytes)) {
  if (bytes_ == 0) return;
  // Anonymous pages come zeroed and are only backed once touched, so a large arena costs nothing at start-up.
  const bool refused = fault::armed && fault::strikes(fault::Event::memory);
  void* pages = refused ? MAP_FAILED : mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    throw WorkError("arena '" + name + "' needs " + std::to_string(bytes_ >> 20) +
                    " MiB, more than this machine can give; use a smaller batch or model");
  }
  madvise(pages, bytes_, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(pages);
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Arena::Arena(std::string name, size_t bytes) : name_(std::move(name)), memory_(std::make_shared<Memory>(name_, bytes)) {}

Tensor Arena::at(size_t offset, Spec spec) const {
  FAIRWAY_ASSERT(offset + spec.bytes() <= capacity(), "a place outside of arena '" + name_ + "'");
  Tensor out = make_view(memory_->data() + offset, spec);
  out.memory = memory_.get();
  return out;
}

Tensor Arena::make(std::string_view name, Spec spec) {
  const size_t bytes = align_up(spec.bytes());
  FAIRWAY_ASSERT(used_ + bytes <= capacity(), "arena '" + name_ + "' is too small for '" + std::string(name) + "'");
  const Tensor out = at(used_, spec);
  used_ += bytes;
  return out;
}

Tensor Arena::all(DType dtype) const { return at(0, {{static_cast<int64_t>(used_ / size_of(dtype))}, dtype}); }

void Arena::poison() {
  if (memory_->data() != nullptr) std::memset(memory_->data(), 0xFF, capacity());
}

}  // namespace fairway
