#include "faults/trial.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <regex>

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kKinds[] = {"fail", "full", "short", "stop", "power", "reorder", "memory", "nan"};
constexpr size_t kNever = 1'000'000'000;

Outcome run_faulty(const Args& args, const std::string& kind, size_t at) {
  return Child(args, {"env", "FAIRWAY_FAULT=" + kind + ":" + std::to_string(at)}).wait();
}

// What no two runs share: times, and the lines they were started by.
bool is_a_time(const std::string& key) {
  static const std::regex form(
      "seconds|_ms$|per_second|speed_of_light|_s$|^time|peak|^sha256$|seconds_needed|gflops|free_bytes|^launches$|^stages$");
  return std::regex_search(key, form);
}

void drop_times(ordered_json& value) {
  if (value.is_object()) {
    for (auto it = value.begin(); it != value.end();) it = is_a_time(it.key()) ? value.erase(it) : std::next(it);
  }
  if (value.is_structured())
    for (auto& part : value) drop_times(part);
}

std::string lasting_text(const Path& path) {
  const std::string name = path.filename(), text = contents(path);
  if (name.ends_with(".json") && !name.starts_with("manifest")) {
    ordered_json value = ordered_json::parse(text, nullptr, false);
    if (value.is_discarded()) return text;
    drop_times(value);
    return std::regex_replace(value.dump(1), std::regex("([0-9.]+ of )?[0-9.]+ (s|ms|tokens/s|minutes|tokens \\(measured\\))"),
                              "$2");
  }
  if (name.ends_with(".log") || name.ends_with(".md"))
    return std::regex_replace(
        text, std::regex("(train_time|step_avg|eval_time|seconds|allocated|reserved|time)([:=] ?)[0-9.]+( MiB|m?s?)"), "$1");
  return text;
}

size_t operations_of(const Outcome& outcome) {
  std::smatch found;
  return std::regex_search(outcome.err, found, std::regex("FAIRWAY_FAULT: ([0-9]+) operations")) ? std::stoul(found[1]) : 0;
}

bool met_its_fault(const Outcome& outcome) {
  return outcome.err.find("FAIRWAY_FAULT: ") != std::string::npos && outcome.err.find(" at operation ") != std::string::npos;
}

// Which of 1 … `operations` are tried: all, a part of all, or about `few` of them evenly.
std::vector<size_t> points_of(size_t operations, size_t few) {
  const char* all = std::getenv("FAIRWAY_TORTURE");
  const char* part = std::getenv("FAIRWAY_TORTURE_PART");
  size_t first = 1, every = 1;
  if (all == nullptr) {
    every = std::max<size_t>(1, operations / few);
    first = (every + 1) / 2;
  } else if (part != nullptr) {
    first = std::strtoul(part, nullptr, 10);
    every = std::max<size_t>(1, std::strtoul(std::strchr(part, '/') + 1, nullptr, 10));
  }
  std::vector<size_t> points;
  for (size_t n = std::max<size_t>(1, first); n <= operations; n += every) points.push_back(n);
  return points;
}

using Files = std::map<std::string, std::string>;

void expect_same_files(const Files& have, const Files& want, const std::string& what) {
  for (const auto& [name, bytes] : want) {
    if (!have.contains(name))
      ADD_FAILURE() << what << ": " << name << " is missing";
    else
      EXPECT_TRUE(have.at(name) == bytes) << what << ": " << name << " differs"
                                          << (bytes.size() < 4000 ? "\n" + have.at(name) + "\nexpected\n" + bytes : "");
  }
  for (const auto& [name, bytes] : have) EXPECT_TRUE(want.contains(name)) << what << ": " << name << " was left behind";
}

void begin_anew(const Trial& trial) {
  fs::remove_all(trial.place);
  if (trial.makes_folder) fs::create_directories(trial.place);
}

// True when the fault was met.
bool try_fault(const Trial& trial, const std::string& kind, size_t at, const Files& want) {
  begin_anew(trial);
  const Outcome faulty = run_faulty(trial.args, kind, at);
  const std::string what = trial.args[0] + " " + kind + ":" + std::to_string(at) + "\n" + faulty.text();
  const bool killed = kind == "stop" || kind == "power" || kind == "reorder";
  if (!met_its_fault(faulty)) {  // threads may take their operations in another order, and fewer of them
    EXPECT_EQ(faulty.status, 0) << what;
    return false;
  }
  EXPECT_TRUE(killed ? faulty.signal == SIGKILL : faulty.status >= 0 && faulty.status <= 2) << what;
  EXPECT_TRUE(faulty.status <= 0 || faulty.err.find("fairway: ") != std::string::npos) << what;
  EXPECT_TRUE(kind != "short" || faulty.status == 0) << what;
  if (faulty.status != 0) {
    const Outcome again = run_program(trial.again.empty() ? trial.args : trial.again);
    const bool done = !trial.done.empty() && again.err.find(trial.done) != std::string::npos;
    EXPECT_TRUE(again.status == 0 || done) << what << "\nagain: " << again.text();
  }
  expect_same_files(lasting_files(trial.place), want, what);
  return true;
}

}  // namespace

std::map<std::string, std::string> lasting_files(const Path& folder) {
  Files out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder), file = entry.path().filename();
    static const std::regex passing("previous\\.safetensors|timing\\.jsonl|report\\.html|run\\.json|\\.fault\\..*|.*\\.lock");
    if (entry.is_regular_file() && !std::regex_match(file, passing)) out[name] = lasting_text(entry.path());
  }
  return out;
}

void expect_faults_survived(const Trial& trial) {
  size_t tried = 0;
  const char* only = std::getenv("FAIRWAY_TORTURE");
  for (const std::string kind : kKinds) {
    if (only != nullptr && only != std::string("all") && only != kind) continue;
    begin_anew(trial);
    const Outcome counted = run_faulty(trial.args, kind, kNever);
    ASSERT_EQ(counted.status, 0) << counted.text();
    const Files want = lasting_files(trial.place);
    const size_t operations = operations_of(counted);
    if (operations == 0 && kind == "nan") continue;  // a command that does not train
    ASSERT_GT(operations, 0u) << counted.text();
    size_t here = 0;
    for (const size_t at : points_of(operations, trial.ci)) {
      here += try_fault(trial, kind, at, want) ? 1 : 0;
      if (testing::Test::HasFailure()) return;
    }
    std::cout << trial.args[0] << ": " << here << " of " << operations << " operations tried (" << kind << ")" << std::endl;
    tried += here;
  }
  testing::Test::RecordProperty("faults", static_cast<int>(tried));
}
