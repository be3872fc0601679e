#include "base/progress_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/output.h"

namespace fairway {
namespace {

constexpr double kTerminalInterval = 0.1, kFirstInterval = 1, kLongestInterval = 15;

}  // namespace

ProgressLine::ProgressLine(bool quiet)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), interval_(terminal_ ? kTerminalInterval : kFirstInterval) {}

ProgressLine::~ProgressLine() {
  if (drawn_ && terminal_) print_err("\n");
}

bool ProgressLine::due() const { return !quiet_ && seconds_now() - last_ >= interval_; }

void ProgressLine::show(const std::string& line) {
  if (quiet_) return;
  if (terminal_) {
    print_err(fmt::format("\r{}\x1b[K", printable(line)));
  } else {
    print_err(printable(line) + "\n");
    interval_ = std::min(interval_ * 1.3, kLongestInterval);
  }
  drawn_ = true;
  last_ = seconds_now();
}

void ProgressLine::say(const std::string& line) {
  if (quiet_) return;
  print_err(fmt::format("{}{}\n", terminal_ && drawn_ ? "\r\x1b[K" : "", printable(line)));
  drawn_ = false;
}

std::string duration_text(double seconds) {
  const long long whole = std::llround(std::max(seconds, 0.0));
  if (whole >= 3600) return fmt::format("{}h{:02d}m", whole / 3600, whole / 60 % 60);
  return whole >= 60 ? fmt::format("{}m{:02d}s", whole / 60, whole % 60) : fmt::format("{}s", whole);
}

std::string quantity_text(double value) {
  if (value >= 1e9) return fmt::format("{:.2f}G", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  return value >= 1e4 ? fmt::format("{:.1f}k", value / 1e3) : fmt::format("{:.0f}", value);
}

}  // namespace fairway
