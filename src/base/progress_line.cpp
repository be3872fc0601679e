#include "base/progress_line.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/output.h"

namespace fairway {
namespace {

constexpr double kTerminalInterval = 0.1, kFirstInterval = 10, kLaterInterval = 60, kFirst = 60;

// Of standard error's terminal, as it is now: windows change.
size_t terminal_columns() {
  constexpr size_t kUsual = 80;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), begun_(seconds_now()) {}

ProgressLine::~ProgressLine() {
  if (drawn_ && terminal_) print_err("\r\x1b[K");  // the work is done or failed: what follows tells
}

bool ProgressLine::due() const {
  const double now = seconds_now();
  const double interval = terminal_ ? kTerminalInterval : now - begun_ < kFirst ? kFirstInterval : kLaterInterval;
  return !quiet_ && now - last_ >= interval;
}

void ProgressLine::show(const std::string& line) {
  if (quiet_) return;
  if (terminal_) {
    // A full line would scroll, and so would the ^C that a terminal writes behind it.
    const size_t columns = terminal_columns();
    print_err(fmt::format("\r{}\x1b[K", fitted(printable(line), columns - std::min<size_t>(columns, 3))));
  } else {
    print_err(printable(line) + "\n");
  }
  drawn_ = true;
  last_ = seconds_now();
}

void ProgressLine::say(const std::string& line) {
  if (quiet_) return;
  print_err(fmt::format("{}{}\n", terminal_ && drawn_ ? "\r\x1b[K" : "", printable(line)));
  drawn_ = false;
}

std::string fitted(const std::string& line, size_t columns) {
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  size_t characters = 0, last = 0;  // where the last character that may stay begins
  for (size_t i = 0; i < line.size(); ++i) {
    if (continues(line[i])) continue;
    if (characters < columns) last = i;
    if (++characters > columns) return columns == 0 ? "" : line.substr(0, last) + "…";
  }
  return line;
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
