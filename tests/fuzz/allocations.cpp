#include "fuzz/allocations.h"

#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace {

thread_local int64_t held = 0, most = 0;

void grow(int64_t bytes) {
  held += bytes;
  if (held <= most) return;
  most = held;
  if (most > kHardStop) {
    held = most = 0;  // the handler that keeps the input allocates too
    std::abort();
  }
}

}  // namespace

#if defined(__has_feature)  // clang's way to tell
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                                         void (*on_free)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void* place);

namespace {

[[maybe_unused]] const int installed =
    __sanitizer_install_malloc_and_free_hooks([](const volatile void*, size_t size) { grow(static_cast<int64_t>(size)); },
                                              [](const volatile void* place) {
                                                if (place != nullptr)
                                                  held -= static_cast<int64_t>(__sanitizer_get_allocated_size(place));
                                              });

}  // namespace

#elif defined(__GLIBC__)

// glibc lets a program replace its allocator by these names; its own lies under the others.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* place, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* place);
}

namespace {

int64_t size_at(void* place) { return place == nullptr ? 0 : static_cast<int64_t>(malloc_usable_size(place)); }
void* counted(void* place) {
  grow(size_at(place));
  return place;
}

}  // namespace

extern "C" {
void* malloc(size_t size) { return counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void* realloc(void* place, size_t size) {
  held -= size_at(place);
  return counted(__libc_realloc(place, size));
}
void* memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
void* aligned_alloc(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
int posix_memalign(void** place, size_t alignment, size_t size) {
  *place = counted(__libc_memalign(alignment, size));
  return *place == nullptr ? ENOMEM : 0;
}
void free(void* place) {
  held -= size_at(place);
  __libc_free(place);
}
}

#endif

void reset_allocations() { held = most = 0; }
int64_t most_allocated() { return most; }
