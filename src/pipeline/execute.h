// How the pipeline does a phase: by a command of this program, given as its arguments.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fairway::pipeline {

using Arguments = std::vector<std::string>;

struct Outcome {
  int status = 0;                 // exit status; what a command throws passes through
  nlohmann::ordered_json result;  // what it prints with --json
};
using Execute = std::function<Outcome(const Arguments&)>;
using Say = std::function<void(const std::string& line)>;

constexpr int kInterrupted = 130;

}  // namespace fairway::pipeline
