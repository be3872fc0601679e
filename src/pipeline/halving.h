// Which trials of a grid train for how long: successive halving. Every rung gives its trials `factor` times the time of the one
// before and keeps the best of each `factor`; the last rung has the whole budget.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fairway::pipeline {

struct Axis {
  std::string key;
  std::vector<std::string> values;
};
Axis parse_axis(const std::string& text);  // "optim.matrix.lr=0.01,0.02"; commas inside [], {} or quotes stay. InputError.

// Every combination, the last axis changing fastest; each trial is a list of key=value.
std::vector<std::vector<std::string>> grid(const std::vector<Axis>& axes);

struct Rung {
  double share = 1;  // of the whole budget
  size_t trials = 0;
};
std::vector<Rung> halving_plan(size_t trials, int factor);

// The `count` trials with the lowest scores, ties by their number; not finite is worst. Ascending by number.
std::vector<size_t> best_of(const std::vector<size_t>& trials, const std::vector<double>& scores, size_t count);

}  // namespace fairway::pipeline
