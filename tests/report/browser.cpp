#include "report/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <thread>

namespace fairway {
namespace {

using nlohmann::json;

constexpr int kMostMilliseconds = 60'000;  // for an answer, on a machine with other work

// Ends above the two numbers that the browser reads its pipe from.
std::array<int, 2> pipe_ends() {
  std::array<int, 2> low{}, high{};
  if (pipe(low.data()) != 0) throw std::runtime_error("no pipe");
  for (size_t i = 0; i < low.size(); ++i) {
    high[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
    close(low[i]);
  }
  return high;
}

}  // namespace

bool Browser::installed() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

Browser::Browser() : profile_(std::filesystem::temp_directory_path() / ("fairway_browser_" + std::to_string(getpid()))) {
  const std::array<int, 2> in = pipe_ends(), out = pipe_ends();
  const std::string profile = "--user-data-dir=" + profile_.string();
  process_ = fork();
  if (process_ == 0) {
    dup2(in[0], 3);
    dup2(out[1], 4);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(nowhere, fd);
    execlp("chromium", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--remote-debugging-pipe", profile.c_str(), "about:blank", nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  const json target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
  session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"].get<std::string>();
  for (const char* domain : {"Page.enable", "Runtime.enable", "Log.enable"}) call(domain, json::object());
}

Browser::~Browser() {
  close(to_);  // the browser ends when nobody drives it
  close(from_);
  for (int i = 0; i < 50 && waitpid(process_, nullptr, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (waitpid(process_, nullptr, WNOHANG) == 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  std::error_code error;
  std::filesystem::remove_all(profile_, error);
}

json Browser::next_message() {
  for (;;) {
    if (const size_t end = received_.find('\0'); end != std::string::npos) {
      json message = json::parse(received_.substr(0, end));
      received_.erase(0, end + 1);
      return message;
    }
    pollfd wish{from_, POLLIN, 0};
    std::array<char, 65536> piece{};
    if (poll(&wish, 1, kMostMilliseconds) <= 0) throw std::runtime_error("the browser does not answer");
    const ssize_t got = read(from_, piece.data(), piece.size());
    if (got <= 0) throw std::runtime_error("the browser has ended");
    received_.append(piece.data(), static_cast<size_t>(got));
  }
}

void Browser::notice(const json& event) {
  const std::string method = event.value("method", "");
  if (method == "Page.loadEventFired") loaded_ = true;
  if (method == "Runtime.consoleAPICalled" || method == "Runtime.exceptionThrown" || method == "Log.entryAdded")
    complaints_.push_back(event["params"].dump());
}

json Browser::call(const std::string& method, const json& parameters) {
  json message{{"id", ++last_call_}, {"method", method}, {"params", parameters}};
  if (!session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump() + '\0';
  for (size_t at = 0; at < text.size();) {
    const ssize_t put = write(to_, text.data() + at, text.size() - at);
    if (put <= 0) throw std::runtime_error("the browser takes no commands");
    at += static_cast<size_t>(put);
  }
  for (;;) {
    const json answer = next_message();
    if (answer.value("id", 0) != last_call_) {
      notice(answer);
      continue;
    }
    if (answer.contains("error")) throw std::runtime_error(method + ": " + answer["error"].dump());
    return answer["result"];
  }
}

void Browser::open(const std::string& address, int width, bool dark) {
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", width < 500}});
  const json scheme{{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}};
  call("Emulation.setEmulatedMedia", {{"features", json::array({scheme})}});
  loaded_ = false;
  call("Page.navigate", {{"url", address}});
  while (!loaded_) notice(next_message());
}

json Browser::evaluate(const std::string& expression) {
  const json answer = call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (answer.contains("exceptionDetails")) throw std::runtime_error(expression + ": " + answer["exceptionDetails"].dump());
  return answer["result"].value("value", json());
}

bool Browser::waits_for(const std::string& expression) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < end) {
    if (evaluate("Boolean(" + expression + ")").get<bool>()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

void Browser::press(const std::string& key, int times) {
  static const std::map<std::string, int> kCodes{{"Tab", 9},        {"Enter", 13},      {" ", 32},         {"Escape", 27},
                                                 {"ArrowLeft", 37}, {"ArrowRight", 39}, {"ArrowDown", 40}, {"End", 35}};
  json down{{"type", "keyDown"}, {"key", key}, {"code", key == " " ? "Space" : key}, {"windowsVirtualKeyCode", kCodes.at(key)}};
  if (key == "Enter") down["text"] = "\r";
  if (key == " ") down["text"] = " ";
  json up = down;
  up["type"] = "keyUp";
  up.erase("text");
  for (int i = 0; i < times; ++i) {
    call("Input.dispatchKeyEvent", down);
    call("Input.dispatchKeyEvent", up);
  }
}

}  // namespace fairway
