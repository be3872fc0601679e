// The report of runs that are still going, on this machine's loopback address only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fairway {

// Both get what stands behind the "?" of the address; nothing: there is no such page.
struct LivePages {
  using Answer = std::function<std::optional<std::string>(const std::string& query)>;
  Answer page;  // "/"
  Answer data;  // "/data.json"
};

// Answers GET requests of at most 64 clients at once until `stop` says so (asked several times a second). A client that takes
// longer than 5 s, for whatever, is left. Requests under another name than this machine's own loopback are refused. Port 0: any
// free one; `ready` is told which. InputError when the port cannot be had.
void serve_report(uint16_t port, const LivePages& pages, const std::function<void(uint16_t)>& ready,
                  const std::function<bool()>& stop);

}  // namespace fairway
