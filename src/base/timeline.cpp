#include "base/timeline.h"

#include <fmt/format.h>

#include <cmath>
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
  std::vector<std::string> out;
  const auto add_event = [&](const nlohmann::ordered_json& event) { out.push_back(event.dump()); };
  const auto microseconds = [](double seconds) { return std::round(seconds * 1e9) / 1e3; };  // whole nanoseconds
  add_event({{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", fmt::format("rank {}", process)}}}});
  for (size_t lane = 0; lane < std::size(kLanes); ++lane)
    add_event({{"ph", "M"}, {"name", "thread_name"}, {"pid", process}, {"tid", lane}, {"args", {{"name", kLanes[lane]}}}});
  for (const Range& range : ranges_)
    add_event({{"ph", "X"},
               {"name", range.name},
               {"pid", process},
               {"tid", static_cast<int>(range.lane)},
               {"ts", microseconds(range.begin - origin)},
               {"dur", microseconds(range.end - range.begin)}});
  ranges_.clear();
  return fmt::format("{}", fmt::join(out, ",\n"));  // one line an event
}

std::string Timeline::trace(const std::vector<std::string>& events_of_ranks, std::string_view ops) {
  return fmt::format("{{\"traceEvents\":[\n{}\n],\n\"ops\":{}}}\n", fmt::join(events_of_ranks, ",\n"), ops);
}

}  // namespace fairway
