// What a run tells while it trains: the progress line, train.log in the challenge's line format (scoring spec §8), the records
// of its folder, and the rates of its summary.
#pragma once

#include <algorithm>
#include <string>

#include "base/progress_line.h"
#include "optim/schedule.h"
#include "train/loop.h"
#include "train/run_folder.h"

namespace fairway {

class Teller {
 public:
  Teller(const Recipe& recipe, RunFolder& folder, bool quiet) : recipe_(recipe), folder_(folder), line_(quiet) {}

  void settings(const std::string& recipe_hash, uint64_t seed);
  void planned(const std::string& note);
  void extended(const std::string& sentence);
  void keeps_free(double seconds);  // of the clock, for counted work after training
  void say(const std::string& line) { line_.say(line); }
  // A finished step that took so many seconds; `waited` are those spent on data since the start.
  void step(const StepRecord& record, const Progress& progress, double seconds, double waited, bool last);
  void looped(const Progress& now);
  void fake_quant(int64_t step, double scale);
  void validated(const Progress& progress, const Validation& v, bool final);
  void stopped_by_clock(const Progress& progress);
  void averaged(const std::string& name);
  void averages_snapshots(int64_t step);
  void memory(double bytes);  // the most that training took
  double peak() const { return peak_gflops_; }
  void peak(double gflops) { peak_gflops_ = std::max(peak_gflops_, gflops); }
  void forecast(double bytes) { forecast_ = bytes; }

  double step_seconds() const { return smooth_seconds_; }  // of the last steps
  void add_rates(TrainSummary& summary) const;

 private:
  void show(const StepRecord& record, const Progress& progress);

  const Recipe& recipe_;
  RunFolder& folder_;
  ProgressLine line_;
  double tokens_done_ = 0, flops_done_ = 0, worked_ = 0, smooth_seconds_ = 0, forecast_ = 0;
  double peak_gflops_ = 0;  // the best seen
};

}  // namespace fairway
