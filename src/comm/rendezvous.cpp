#include "comm/rendezvous.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/error.h"

namespace fairway {
namespace {

class Socket {
 public:
  explicit Socket(int handle) : handle_(handle) {}
  ~Socket() {
    if (handle_ >= 0) close(handle_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int handle() const { return handle_; }

 private:
  int handle_;
};

int milliseconds_until(double end) { return static_cast<int>(std::max(0.0, 1e3 * (end - seconds_now()))); }

std::string text_of(const Meeting& meeting) { return meeting.host + ":" + meeting.port; }

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
Addresses resolve(const Meeting& meeting, bool listening) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = listening ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(listening ? nullptr : meeting.host.c_str(), meeting.port.c_str(), &hints, &found);
  if (status != 0) throw InputError("ranks meet at " + text_of(meeting) + ": " + gai_strerror(status));
  return {found, freeaddrinfo};
}

void give(const Meeting& meeting, int others, std::span<const std::byte> bytes, double end) {
  const Addresses at = resolve(meeting, true);
  const Socket door(socket(at->ai_family, SOCK_STREAM, 0));
  const int again = 1;
  setsockopt(door.handle(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof(again));
  if (bind(door.handle(), at->ai_addr, at->ai_addrlen) != 0 || listen(door.handle(), others) != 0)
    throw InputError("ranks meet at " + text_of(meeting) + ": cannot listen (" + std::strerror(errno) + ")");
  for (int i = 0; i < others; ++i) {
    pollfd waiting{door.handle(), POLLIN, 0};
    if (poll(&waiting, 1, milliseconds_until(end)) <= 0)
      throw InputError("ranks meet at " + text_of(meeting) + ": " + std::to_string(others - i) + " of them did not arrive");
    const Socket guest(accept(door.handle(), nullptr, nullptr));
    if (send(guest.handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) --i;
  }
}

bool take(const Meeting& meeting, std::span<std::byte> bytes, double end) {
  const Addresses at = resolve(meeting, false);
  const Socket link(socket(at->ai_family, SOCK_STREAM, 0));
  if (connect(link.handle(), at->ai_addr, at->ai_addrlen) != 0) return false;
  for (size_t have = 0; have < bytes.size();) {
    pollfd waiting{link.handle(), POLLIN, 0};
    if (poll(&waiting, 1, milliseconds_until(end)) <= 0) return false;
    const ssize_t got = recv(link.handle(), bytes.data() + have, bytes.size() - have, 0);
    if (got <= 0) return false;
    have += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

Meeting meeting_place(const Environment& environment) {
  const auto variable = [&](const char* name) {
    const char* text = environment(name);
    return std::string(text == nullptr ? "" : text);
  };
  const std::string place = variable("FAIRWAY_RENDEZVOUS"), port = variable("MASTER_PORT");
  int number = 0;
  const auto read = [&](const std::string& text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && number > 0 && number < 65535;
  };
  if (const size_t colon = place.rfind(':'); !place.empty()) {
    if (colon == std::string::npos || colon == 0 || !read(place.substr(colon + 1)))
      throw InputError("FAIRWAY_RENDEZVOUS = " + place + ": expected HOST:PORT");
    return {place.substr(0, colon), std::to_string(number)};
  }
  if (variable("MASTER_ADDR").empty() || !read(port))
    throw InputError("WORLD_SIZE and RANK are set, but not MASTER_ADDR and MASTER_PORT = " + port +
                     ", where the ranks could meet; set them as torchrun does, or FAIRWAY_RENDEZVOUS=HOST:PORT");
  return {variable("MASTER_ADDR"), std::to_string(number + 1)};
}

void hand_out(const Launch& launch, std::span<std::byte> bytes, double seconds) {
  const Meeting meeting = meeting_place([](const char* name) { return std::getenv(name); });
  const double end = seconds_now() + seconds;
  if (launch.rank == 0) return give(meeting, launch.size - 1, bytes, end);
  constexpr useconds_t kBetween = 50'000;
  while (!take(meeting, bytes, end)) {
    if (seconds_now() >= end) throw InputError("ranks meet at " + text_of(meeting) + ": rank 0 does not answer there");
    usleep(kBetween);
  }
}

}  // namespace fairway
