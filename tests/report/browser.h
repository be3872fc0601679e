// Chromium without a window, driven through its debugging pipe: pages are opened as a reader opens them, keys are pressed as a
// keyboard presses them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fairway {

class Browser {
 public:
  static bool installed();

  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open(const std::string& address, int width = 1200, bool dark = false);
  nlohmann::json evaluate(const std::string& expression);
  // Until the expression is true, at most half a minute.
  bool waits_for(const std::string& expression);
  void press(const std::string& key, int times = 1);  // "Tab", "Enter", "ArrowRight", …
  // What pages have written to the console or thrown since the browser began, a line each.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  nlohmann::json call(const std::string& method, const nlohmann::json& parameters);
  nlohmann::json next_message();
  void notice(const nlohmann::json& event);

  std::filesystem::path profile_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1, last_call_ = 0;
  std::string session_, received_;
  bool loaded_ = false;
  std::vector<std::string> complaints_;
};

}  // namespace fairway
