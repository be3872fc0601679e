#include "report/page.h"

#include <ctime>

#include "base/error.h"
#include "report/run_data.h"

namespace fairway {

extern const std::string_view kReportPage;  // made from page.html

namespace {

using nlohmann::ordered_json;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

}  // namespace

ordered_json report_data(std::span<const std::filesystem::path> folders, bool live) {
  ordered_json runs = ordered_json::array();
  for (const auto& folder : folders) runs.push_back(read_run(folder));
  return {{"runs", std::move(runs)}, {"made", live ? "" : today()}, {"live", live}};
}

std::string report_page(const ordered_json& data) {
  const std::string json = data.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
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
