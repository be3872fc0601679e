// One GET over HTTP or HTTPS, by libcurl: bounded in redirects, in time without data and in bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fairway::fetch {

bool http_in_build();

struct HttpRequest {
  std::string address;
  uint64_t from = 0;        // only the bytes from here on
  uint64_t most_bytes = 0;  // the whole file has no more
  double stall_seconds = 30;
  // Called before the first byte: where the body begins. 0 although `from` was asked for: the server sends everything.
  std::function<void(uint64_t from)> begin = [](uint64_t) {};
  std::function<void(std::string_view bytes)> take;  // both may throw, which ends the transfer and passes through
  std::function<bool()> stop = [] { return false; };
};

struct HttpAnswer {
  std::string problem;         // a sentence's end ("HTTP status 404"); empty: the body came to its end
  bool stopped = false;        // by stop()
  bool stalled = false;        // nothing came for too long
  bool range_refused = false;  // the file has no bytes at `from`
};

inline constexpr int kMostRedirects = 5;
inline constexpr int kConnectSeconds = 20;

HttpAnswer http_get(const HttpRequest& request);
// The whole body; InputError naming the address when it cannot be had or is longer.
std::string http_read(const std::string& address, uint64_t most_bytes, double stall_seconds);

}  // namespace fairway::fetch
