// Where the program's memory comes from: the system, but that a test may let a large piece not be there (base/fault.h).
#include <cstdlib>
#include <new>

#include "base/fault.h"

void* operator new(std::size_t bytes) {
  constexpr std::size_t kLarge = 32768;
  const bool refused = bytes >= kLarge && fairway::fault::armed && fairway::fault::strikes(fairway::fault::Event::memory);
  void* place = refused ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (place == nullptr) throw std::bad_alloc();
  return place;
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }
