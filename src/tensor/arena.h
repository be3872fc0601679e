// One aligned allocation cut into named tensors. Everything a run needs is made here at start-up; nothing allocates later.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace fairway {

inline constexpr size_t kArenaAlignment = 64;  // one cache line, one AVX-512 vector
inline constexpr size_t align_up(size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// What an arena's tensors lie in. A backend with memory of its own keeps a copy by this identity, which no later memory gets
// again, and lets go of it once the memory is gone.
class Memory : public std::enable_shared_from_this<Memory> {
 public:
  Memory(const std::string& name, size_t bytes);  // zeroed; pages are only backed once touched
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint64_t id() const { return id_; }
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  uint64_t id_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

class Arena {
 public:
  Arena(std::string name, size_t bytes);  // zeroed

  Tensor make(std::string_view name, Spec spec);  // lives as long as the arena
  Tensor all(DType dtype) const;                  // everything made so far as one vector, with the zeros in between
  Tensor at(size_t offset, Spec spec) const;      // a place that the caller has planned
  size_t capacity() const { return memory_->bytes(); }
  size_t used() const { return used_; }
  void poison();  // every byte 0xFF: floats read before they are written are NaN

 private:
  std::string name_;
  std::shared_ptr<Memory> memory_;
  size_t used_ = 0;
};

}  // namespace fairway
