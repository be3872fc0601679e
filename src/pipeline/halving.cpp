#include "pipeline/halving.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace fairway::pipeline {

Axis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InputError("--sweep " + text + ": expected key=value,value,… such as optim.matrix.lr=0.01,0.02");
  Axis axis{text.substr(0, equals), {}};
  std::string value;
  int depth = 0;
  bool quoted = false;
  for (size_t at = equals + 1; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (at < text.size() && (c != ',' || depth > 0 || quoted)) {
      value += c;
      continue;
    }
    if (value.empty()) throw InputError("--sweep " + text + ": a value is missing; expected key=value,value,…");
    if (std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end())
      throw InputError(fmt::format("--sweep {}: {} appears twice", text, value));
    axis.values.push_back(std::move(value));
    value.clear();
  }
  return axis;
}

std::vector<std::vector<std::string>> grid(const std::vector<Axis>& axes) {
  std::vector<std::vector<std::string>> trials{{}};
  for (const Axis& axis : axes) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& trial : trials) {
      for (const std::string& value : axis.values) {
        longer.push_back(trial);
        longer.back().push_back(axis.key + "=" + value);
      }
    }
    trials = std::move(longer);
  }
  return trials;
}

std::vector<Rung> halving_plan(size_t trials, int factor) {
  FAIRWAY_ASSERT(trials > 0 && factor >= 2, "a sweep without trials or halving");
  std::vector<Rung> rungs;
  for (size_t left = trials;; left = (left + static_cast<size_t>(factor) - 1) / static_cast<size_t>(factor)) {
    rungs.push_back({1, left});
    if (left == 1) break;
  }
  // One trial alone has nothing to be chosen from: the last rung with a choice has the whole budget.
  if (rungs.size() > 1) rungs.pop_back();
  for (size_t i = 0; i < rungs.size(); ++i) rungs[i].share = std::pow(factor, -static_cast<double>(rungs.size() - 1 - i));
  return rungs;
}

std::vector<size_t> best_of(const std::vector<size_t>& trials, const std::vector<double>& scores, size_t count) {
  FAIRWAY_ASSERT(trials.size() == scores.size(), "a score for each trial");
  std::vector<size_t> order(trials.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto worth = [&](size_t i) { return std::isfinite(scores[i]) ? scores[i] : INFINITY; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return worth(a) < worth(b); });
  order.resize(std::min(count, order.size()));
  std::vector<size_t> out;
  out.reserve(order.size());
  for (const size_t i : order) out.push_back(trials[i]);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace fairway::pipeline
