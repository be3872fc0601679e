// One aligned allocation cut into named tensors. Everything a run needs is made here at start-up; nothing allocates later.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace fairway {

inline constexpr size_t kArenaAlignment = 64;  // one cache line, one AVX-512 vector
inline constexpr size_t align_up(size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

class Arena {
 public:
  Arena(std::string name, size_t bytes);  // zeroed; poisoned with NaN where asked by poison()
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  Arena(const Arena&) = delete;

  Tensor make(std::string_view name, Spec spec);  // lives as long as the arena
  std::byte* base() const { return data_; }
  size_t capacity() const { return capacity_; }
  size_t used() const { return used_; }
  const std::string& name() const { return name_; }
  void poison();  // every byte 0xFF: floats read before they are written are NaN

  // The arena that holds an address, or null. A device backend keeps its copy of an arena beside it, to be freed with it.
  static Arena* containing(const std::byte* address);
  std::shared_ptr<void>& device_copy() { return device_copy_; }

  struct Part {
    std::string name;
    Spec spec;
    size_t offset;
  };
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::string name_;
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
  size_t used_ = 0;
  std::vector<Part> parts_;
  std::shared_ptr<void> device_copy_;
};

}  // namespace fairway
