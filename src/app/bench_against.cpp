#include "app/bench_against.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>

#include "app/command.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace fairway::app {
namespace {

using nlohmann::ordered_json;

// What two timings must have in common to be compared.
constexpr std::array<std::string_view, 12> kNames{"recipe",    "tokens", "looped", "data", "backend", "device",
                                                  "documents", "pass",   "layout", "m",    "n",       "k"};
constexpr uint64_t kMostBytes = uint64_t{16} << 20;

std::string name_of_timing(const ordered_json& line) {
  std::string name;
  for (const std::string_view key : kNames)
    if (const auto at = line.find(key); at != line.end() && (at->is_string() || at->is_boolean() || at->is_number()))
      name += fmt::format("{}{} {}", name.empty() ? "" : ", ", key, at->is_string() ? at->get<std::string>() : at->dump());
  return name;
}

// Milliseconds of every object that has some, by its name; those of lists have the name of the whole before their own.
void collect(const ordered_json& at, const std::string& whole, std::map<std::string, double>& out) {
  if (at.is_array())
    for (const ordered_json& one : at) collect(one, whole, out);
  if (!at.is_object()) return;
  const std::string own = name_of_timing(at), name = whole.empty() || own.empty() ? whole + own : whole + ", " + own;
  if (const auto ms = at.find("median_ms"); ms != at.end() && ms->is_number()) out[name] = ms->get<double>();
  for (const auto& [key, value] : at.items())
    if (value.is_array()) collect(value, name, out);
}

std::map<std::string, double> timings_of(const ordered_json& result) {
  std::map<std::string, double> out;
  collect(result, "", out);
  return out;
}

}  // namespace

void add_against(CLI::App& command, AgainstFlags& flags) {
  command.add_option("--against", flags.file,
                     "timings of this command, written with --json before: fail where one is slower now");
  command.add_option("--most-loss", flags.most, "of --against: percent that a timing may be slower")
      ->capture_default_str()
      ->check(number_between(0, 1000));
}

int hold_against(const AgainstFlags& flags, ordered_json& result, std::string& text) {
  if (flags.file.empty()) return 0;
  const auto before = timings_of(parse_json<ordered_json>(read_file(flags.file, kMostBytes), flags.file));
  ordered_json lines = ordered_json::array();
  bool held = true;
  for (const auto& [name, ms] : timings_of(result)) {
    const auto at = before.find(name);
    if (at == before.end() || !(at->second > 0))
      throw InputError(fmt::format("--against {}: has no timing of {}", flags.file, name));
    const double slower = 100 * (ms / at->second - 1);
    const bool good = slower <= flags.most;
    held &= good;
    lines.push_back({{"name", name}, {"before_ms", at->second}, {"now_ms", ms}, {"slower_percent", slower}, {"holds", good}});
    text += fmt::format("{}{:.4g} ms, before {:.4g}: {:.1f}% {}{}\n", lines.size() == 1 ? "\n" : "", ms, at->second,
                        slower < 0 ? -slower : slower, slower < 0 ? "faster" : "slower",
                        good ? "" : fmt::format(", more than {:g}%: {}", flags.most, name));
  }
  result["against"] = lines;
  result["holds"] = held;
  return held ? 0 : 1;
}

}  // namespace fairway::app
