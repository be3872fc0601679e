// A run's folder with 1,200 steps, as training leaves it when it is killed in the middle of a line.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace fairway {

namespace fs = std::filesystem;

class Report : public testing::Test {
 protected:
  Report() : folder_(fs::temp_directory_path() / ("fairway_report_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    write("recipe.toml", to_toml(load_recipe("smoke")));
    std::string metrics, timing;
    for (int step = 1; step <= kSteps; ++step) {
      metrics += R"({"step":)" + std::to_string(step) + R"(,"loss":)" + std::to_string(8.0 - 0.001 * step) +
                 R"(,"grad_norm":0.5,"lr_scale":1,"momentum":0.9})" + "\n";
      timing += R"({"step":)" + std::to_string(step) + R"(,"train_seconds":)" + std::to_string(0.25 * step) +
                R"(,"step_ms":250,"data_wait_seconds":0})" + "\n";
    }
    write("metrics.jsonl", metrics + R"({"step":1200,"val_loss":6.75,"val_bpb":3.5})" + "\n{\"step\":12");  // cut by a kill
    write("timing.jsonl", timing);
  }
  ~Report() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const { write_at(folder_ / name, text); }
  static void write_at(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  static Recipe smoke_with(const std::vector<std::string>& overrides) { return load_recipe("smoke", overrides); }
  // Another run with the same records.
  fs::path copy_run(const fs::path& to, const std::vector<std::string>& overrides = {}) const {
    write_at(to / "recipe.toml", to_toml(smoke_with(overrides)));
    for (const char* name : {"metrics.jsonl", "timing.jsonl"}) fs::copy_file(folder_ / name, to / name);
    return to;
  }

  static constexpr int kSteps = 1200;
  fs::path folder_;
};

}  // namespace fairway
