#include "report/page.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "report/groups.h"
#include "report/records.h"
#include "report/run_data.h"
#include "report/run_list.h"

namespace fairway {

extern const std::string_view kReportPage;  // made from page.html

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

// A page of many runs draws fewer points of each, so that it stays below 1.5 MB.
size_t points_of(size_t runs) {
  constexpr size_t kAll = 6000, kLeast = 60;
  return std::clamp(kAll / std::max<size_t>(runs, 1), kLeast, kMostPoints);
}

ordered_json read_runs(std::span<const fs::path> folders, std::span<const std::string> names) {
  ordered_json runs = ordered_json::array();
  for (size_t i = 0; i < folders.size(); ++i) {
    runs.push_back(read_run(folders[i], points_of(folders.size())));
    runs.back()["name"] = names[i];
  }
  return runs;
}

ordered_json group_page(const fs::path& folder, FolderKind kind) {
  if (kind == FolderKind::seeds) {
    const std::vector<fs::path> runs = side_of(folder).runs;
    return {{"page", "seeds"},
            {"title", folder_name(folder)},
            {"runs", read_runs(runs, distinct_names(runs))},
            {"seeds", seeds_data(folder)}};
  }
  const SweepData sweep = sweep_data(folder);
  return {{"page", "sweep"},
          {"title", folder_name(folder)},
          {"runs", read_runs(sweep.runs, distinct_names(sweep.runs))},
          {"sweep", sweep.data}};
}

ordered_json comparison_page(std::span<const fs::path> folders) {
  const std::vector<std::string> names = distinct_names(folders);
  std::vector<ReportSide> sides;
  std::vector<fs::path> runs;
  std::vector<std::string> run_names;
  ordered_json told = ordered_json::array();
  for (size_t i = 0; i < folders.size(); ++i) {
    sides.push_back(side_of(folders[i]));
    sides.back().name = names[i];
    ordered_json members = ordered_json::array();
    for (const fs::path& run : sides.back().runs) {
      members.push_back(runs.size());
      runs.push_back(run);
      run_names.push_back(sides.back().runs.size() > 1 ? names[i] + "/" + folder_name(run) : names[i]);
    }
    told.push_back({{"name", names[i]}, {"runs", members}});
  }
  return {{"page", "compare"},
          {"title", ""},
          {"runs", read_runs(runs, run_names)},
          {"sides", told},
          {"differences", recipe_differences(sides)}};
}

}  // namespace

ordered_json report_data(std::span<const fs::path> folders, bool live) {
  const FolderKind kind = folder_kind_of(folders.front());
  ordered_json data;
  if (folders.size() > 1)
    data = comparison_page(folders);
  else if (kind == FolderKind::seeds || kind == FolderKind::sweep)
    data = group_page(folders.front(), kind);
  else
    data = {
        {"page", "run"}, {"title", folder_name(folders.front())}, {"runs", ordered_json::array({read_run(folders.front())})}};
  data["made"] = live ? "" : today();
  data["live"] = live;
  return data;
}

std::optional<ordered_json> folder_data(const fs::path& folder, const std::string& query) {
  const std::vector<std::string> names = names_in_query(query);
  if (names.empty())
    return ordered_json{{"page", "folder"},
                        {"title", folder_name(folder)},
                        {"runs", ordered_json::array()},
                        {"folder", folder_rows(folder)},
                        {"made", ""},
                        {"live", true}};
  std::vector<fs::path> chosen;
  const std::vector<ListedRun> found = list_runs(folder);
  for (const std::string& name : names) {  // only what the list has: a name is never made a path
    const auto listed = std::find_if(found.begin(), found.end(), [&](const ListedRun& one) { return one.name == name; });
    if (listed == found.end()) return std::nullopt;
    chosen.push_back(listed->path);
  }
  ordered_json data = report_data(chosen, true);
  data["back"] = true;
  return data;
}

std::string json_text(const ordered_json& data) { return data.dump(-1, ' ', false, ordered_json::error_handler_t::replace); }

std::string report_page(const ordered_json& data) {
  const std::string json = json_text(data);
  std::string safe;  // "</script>" inside a string must not end the script
  for (const char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  constexpr std::string_view kPlace = "@DATA@";
  std::string page(kReportPage);
  const size_t at = page.find(kPlace);
  FAIRWAY_ASSERT(at != std::string::npos, "the page has no place for its data");
  return page.replace(at, kPlace.size(), safe);
}

}  // namespace fairway
