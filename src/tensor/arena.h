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
  // Zeroed; poisoned with NaN where asked by poison(). What the host has written when a device makes its copy goes there,
  // unless the arena is one that programs alone fill: then the copy begins with zeros, and the host's pages need never exist.
  enum class Filled : uint8_t { by_host, by_programs };
  Arena(std::string name, size_t bytes, Filled filled = Filled::by_host);
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
  Filled filled() const { return filled_; }

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
  Filled filled_ = Filled::by_host;
  std::vector<Part> parts_;
  std::shared_ptr<void> device_copy_;
};

}  // namespace fairway
