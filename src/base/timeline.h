// What ran when, as a file that chrome://tracing and Perfetto draw. Off unless asked for; a range then costs two clock
// readings. One process is one row of lanes: the host, what is under way between ranks, and a device's queues.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace fairway {

enum class Lane : uint8_t { host, network, device, device_network };

class Timeline {
 public:
  static Timeline* active();  // null unless recording
  static void record(bool on);

  void add(std::string name, Lane lane, double begin, double end);
  // Called before the ranges are read: whoever measures on a device adds its ranges then.
  void before_reading(std::function<void(Timeline&)> collect) { collectors_.push_back(std::move(collect)); }

  // The ranges as elements of a trace's list, joined by commas; `process` is the rank. Times count from `origin`.
  std::string events(int process, double origin);
  // The whole file; `ops` is a list for readers of the file, which the drawing programs pass over.
  static std::string trace(const std::vector<std::string>& events_of_ranks, std::string_view ops = "[]");

 private:
  struct Range {
    std::string name;
    Lane lane;
    double begin, end;
  };
  std::vector<Range> ranges_;
  std::vector<std::function<void(Timeline&)>> collectors_;
};

// A range of the host from here to the end of the scope.
class TimelineRange {
 public:
  explicit TimelineRange(std::string_view name) : name_(name), begin_(Timeline::active() != nullptr ? seconds_now() : 0) {}
  ~TimelineRange() {
    if (Timeline* timeline = Timeline::active(); timeline != nullptr && begin_ > 0)
      timeline->add(std::string(name_), Lane::host, begin_, seconds_now());
  }
  TimelineRange(const TimelineRange&) = delete;
  TimelineRange& operator=(const TimelineRange&) = delete;

 private:
  std::string_view name_;
  double begin_;
};

}  // namespace fairway
