#include "base/timeline.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace fairway {
namespace {

constexpr const char* kLanes[] = {"host", "between ranks", "device", "device, between ranks"};

bool recording = false;

}  // namespace

Timeline* Timeline::active() {
  static Timeline timeline;
  return recording ? &timeline : nullptr;
}

void Timeline::record(bool on) { recording = on; }

void Timeline::add(std::string name, Lane lane, double begin, double end) {
  ranges_.push_back({std::move(name), lane, begin, end});
}

std::string Timeline::events(int process, double origin) {
  for (const auto& collect : collectors_) collect(*this);
  collectors_.clear();
  std::string out = fmt::format(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}})", process);
  for (size_t lane = 0; lane < std::size(kLanes); ++lane) {
    out += fmt::format(
        ",\n"
        R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
        process, lane, kLanes[lane]);
  }
  for (const Range& range : ranges_) {
    out += fmt::format(
        ",\n"
        R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
        nlohmann::json(range.name).dump(), process, static_cast<int>(range.lane), (range.begin - origin) * 1e6,
        (range.end - range.begin) * 1e6);
  }
  ranges_.clear();
  return out;
}

std::string Timeline::trace(const std::vector<std::string>& events_of_ranks, std::string_view ops) {
  return fmt::format("{{\"traceEvents\":[\n{}\n],\n\"ops\":{}}}\n", fmt::join(events_of_ranks, ",\n"), ops);
}

}  // namespace fairway
