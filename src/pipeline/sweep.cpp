#include "pipeline/sweep.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/disk.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "pipeline/halving.h"
#include "pipeline/ledger.h"

namespace fairway::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr size_t kMostTrials = 4096;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

class Sweep {
 public:
  Sweep(const SweepRequest& request, const Stages& stages, const Say& say)
      : request_(request), stages_(stages), say_(say), ledger_(request.chain.out, "sweep") {
    std::vector<Axis> axes;
    double count = 1;
    for (const std::string& text : request.axes) {
      axes.push_back(parse_axis(text));
      count *= static_cast<double>(axes.back().values.size());
    }
    if (count > static_cast<double>(kMostTrials))
      throw InputError(fmt::format("--sweep: {:.0f} combinations; expected at most {}", count, kMostTrials));
    trials_ = grid(axes);
    rungs_ = halving_plan(trials_.size(), request.factor);
    for (const auto& trial : trials_) load_recipe(request.chain.recipe, overrides(trial, 1));  // refused before any work
  }

  SweepResult run();

 private:
  std::vector<std::string> overrides(const std::vector<std::string>& trial, double share) const;
  std::string folder(size_t rung, size_t trial) const {
    return (fs::path(request_.chain.out) / fmt::format("rung{}", rung + 1) / fmt::format("trial{}", trial + 1)).string();
  }
  ChainRequest chain(size_t rung, size_t trial) const;
  void begin();
  bool train(size_t rung, size_t trial);  // false when interrupted
  double score(size_t rung, size_t trial) const;
  std::string left(size_t rung, size_t at, size_t trials) const;
  std::string table(const std::vector<std::vector<size_t>>& rungs) const;
  ordered_json& results() { return ledger_.content()["results"]; }

  const SweepRequest& request_;
  const Stages& stages_;
  const Say& say_;
  Ledger ledger_;
  std::vector<std::vector<std::string>> trials_;
  std::vector<Rung> rungs_;
};

// The share of the recipe's budget, in its own unit.
std::vector<std::string> Sweep::overrides(const std::vector<std::string>& trial, double share) const {
  std::vector<std::string> out = request_.chain.overrides;
  out.insert(out.end(), trial.begin(), trial.end());
  const Recipe whole = load_recipe(request_.chain.recipe, out);
  if (schedule_clock(whole) == ScheduleClock::steps) {
    const double steps = std::ceil(static_cast<double>(whole.train.steps) * share);
    out.push_back(fmt::format("train.steps={}", static_cast<int64_t>(steps)));
  } else {
    out.push_back(fmt::format("train.seconds={}", whole.train.seconds * share));
  }
  return out;
}

ChainRequest Sweep::chain(size_t rung, size_t trial) const {
  ChainRequest out = request_.chain;
  out.overrides = overrides(trials_[trial], rungs_[rung].share);
  out.out = folder(rung, trial);
  out.resume = true;  // the sweep's own ledger has been asked
  out.training_only = true;
  return out;
}

void Sweep::begin() {
  const ordered_json plan{{"recipe", request_.chain.recipe},
                          {"set", request_.chain.overrides},
                          {"axes", request_.axes},
                          {"factor", request_.factor}};
  const bool begun = ledger_.begun() && holds_any_run(request_.chain.out);
  if (begun && !request_.chain.resume)
    throw InputError("--out " + request_.chain.out + ": already holds a sweep; add --resume to continue it");
  if (begun && ledger_.content().value("plan", ordered_json()) != plan)
    throw InputError("--out " + request_.chain.out + ": holds a sweep with a different recipe, settings or values");
  ledger_.content()["plan"] = plan;
  if (!begun || !ledger_.content().contains("results")) results() = ordered_json::object();
  ledger_.save();
}

std::string Sweep::left(size_t rung, size_t at, size_t trials) const {
  const Recipe recipe = load_recipe(request_.chain.recipe, request_.chain.overrides);
  if (schedule_clock(recipe) == ScheduleClock::steps) return "";
  double seconds = rungs_[rung].share * static_cast<double>(trials - at);
  for (size_t r = rung + 1; r < rungs_.size(); ++r) seconds += rungs_[r].share * static_cast<double>(rungs_[r].trials);
  return fmt::format(", about {} of training left", duration_text(seconds * recipe.train.seconds));
}

bool Sweep::train(size_t rung, size_t trial) {
  const std::string key = fmt::format("rung{}/trial{}", rung + 1, trial + 1);
  if (results().contains(key)) return true;
  ordered_json record{{"set", trials_[trial]}, {"share", rungs_[rung].share}};
  try {
    const ChainResult one = run_chain(chain(rung, trial), stages_, [](const std::string&) {});
    if (one.status == kInterrupted) return false;
    const char* metric = one.summary.contains("val_bpb") ? "val_bpb" : "loss";
    record["metric"] = metric;
    record["score"] = one.summary.value(metric, ordered_json());
    record["steps"] = one.summary.value("steps", ordered_json());
    record["train_seconds"] = one.summary.value("train_seconds", ordered_json());
  } catch (const WorkError& error) {  // a trial may blow up; that is a result, and the others go on
    record["failed"] = error.what();
    say_(fmt::format("   {}: {}", key, error.what()));
  }
  disk::remove_all(fs::path(folder(rung, trial)) / "checkpoint");  // the largest files, of no more use
  results()[key] = record;
  ledger_.save();
  return true;
}

double Sweep::score(size_t rung, size_t trial) const {
  const ordered_json& record = ledger_.content()["results"][fmt::format("rung{}/trial{}", rung + 1, trial + 1)];
  return record.contains("score") && record["score"].is_number() ? record["score"].get<double>() : INFINITY;
}

std::string Sweep::table(const std::vector<std::vector<size_t>>& rungs) const {
  std::string text = fmt::format("{:>6}{:>8}{:>10}{:>12}  {}\n", "rung", "trial", "budget", "score", "settings");
  for (size_t r = 0; r < rungs.size(); ++r) {
    std::vector<size_t> order = rungs[r];
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score(r, a) < score(r, b); });
    for (const size_t t : order) {
      const double value = score(r, t);
      text += fmt::format("{:>6}{:>8}{:>9.4g}%{:>12}  {}\n", r + 1, t + 1, 100 * rungs_[r].share,
                          std::isfinite(value) ? fmt::format("{:.5f}", value) : "failed", joined(trials_[t]));
    }
  }
  return text;
}

SweepResult Sweep::run() {
  begin();
  std::vector<size_t> alive(trials_.size());
  std::iota(alive.begin(), alive.end(), size_t{0});
  std::vector<std::vector<size_t>> went;
  for (size_t r = 0; r < rungs_.size(); ++r) {
    went.push_back(alive);
    std::vector<double> scores;
    for (size_t i = 0; i < alive.size(); ++i) {
      say_(fmt::format("== rung {}/{}, trial {} ({}/{}{}): {}", r + 1, rungs_.size(), alive[i] + 1, i + 1, alive.size(),
                       left(r, i, alive.size()), joined(trials_[alive[i]])));
      if (!train(r, alive[i])) return {kInterrupted, {{"path", request_.chain.out}, {"interrupted", true}}, ""};
      scores.push_back(score(r, alive[i]));
    }
    alive = best_of(alive, scores, r + 1 < rungs_.size() ? rungs_[r + 1].trials : 1);
  }
  const size_t best = alive.front(), last = rungs_.size() - 1;
  if (!std::isfinite(score(last, best))) throw WorkError("--sweep: every trial of the last rung failed:\n" + table(went));
  say_(fmt::format("== the best, trial {}, as a whole run: {}", best + 1, joined(trials_[best])));
  ChainRequest whole = chain(last, best);
  whole.training_only = false;
  const ChainResult run = run_chain(whole, stages_, say_);
  if (run.status == kInterrupted) return {kInterrupted, {{"path", request_.chain.out}, {"interrupted", true}}, ""};
  ledger_.content()["best"] = {{"trial", best + 1}, {"set", trials_[best]}, {"path", whole.out}, {"run", run.summary}};
  ledger_.save();
  stages_.report(request_.chain.out);
  ordered_json result{
      {"path", request_.chain.out}, {"trials", trials_}, {"results", results()}, {"best", ledger_.content()["best"]}};
  const std::string text =
      table(went) + fmt::format("best: trial {}, {}\n", best + 1, joined(trials_[best])) + summary_text(run.summary);
  return {run.status, result, text};
}

}  // namespace

SweepResult run_sweep(const SweepRequest& request, const Stages& stages, const Say& say) {
  return Sweep(request, stages, say).run();
}

}  // namespace fairway::pipeline
