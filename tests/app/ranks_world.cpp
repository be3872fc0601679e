#include "app/ranks_world.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace fs = std::filesystem;

size_t occurrences(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = contents(entry.path() / "stat");
    const size_t end = stat.rfind(')');
    if (end != std::string::npos && std::atoi(stat.c_str() + end + 4) == parent) out.push_back(std::atoi(name.c_str()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool ended(pid_t pid) {
  for (int tries = 0; tries < 1000; ++tries, ::usleep(10000)) {
    const std::string stat = contents(fs::path("/proc") / std::to_string(pid) / "stat");
    const size_t end = stat.rfind(')');
    if (end == std::string::npos || stat[end + 2] == 'Z' || stat[end + 2] == 'X') return true;
  }
  return false;
}

void RanksWorld::SetUp() {
  setenv("FAIRWAY_WATCHDOG_SECONDS", "3", 1);
  make_data(scratch_ / "data");
}

void RanksWorld::TearDown() { unsetenv("FAIRWAY_WATCHDOG_SECONDS"); }

Args RanksWorld::train(const std::string& run, int steps, const Args& more) const {
  Args args{"--steps",   std::to_string(steps),
            "--set",     "train.emulated_world=4",
            "--set",     "train.checkpoint_every=3",
            "--set",     "train.validate_every=6",
            "--threads", "1"};
  args.insert(args.end(), more.begin(), more.end());
  return train_smoke(scratch_ / "data", scratch_ / run, args);
}

RunBytes RanksWorld::straight(int steps) {
  const Outcome made = run_program(train("straight", steps));
  EXPECT_EQ(made.status, 0) << made.text();
  return bytes_of_run(scratch_ / "straight");
}

size_t RanksWorld::records(const std::string& run) const {
  const std::string text = contents(scratch_ / run / "metrics.jsonl");
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

void RanksWorld::wait_for_records(Child& child, const std::string& run, size_t count) const {
  while (child.running() && records(run) < count) ::usleep(500);
}

std::vector<pid_t> RanksWorld::ranks_of(Child& launcher, size_t count) {
  std::vector<pid_t> all;
  while (all.size() < count && launcher.running()) all = children_of(launcher.pid());
  return all;
}
