// Whether the model's certainty is earned (scoring spec §7.4): expected calibration error over equal bins of the largest
// probability, with accuracy and entropy.
#pragma once

#include <array>

#include "analysis/token_rows.h"

namespace fairway {

inline constexpr size_t kCalibrationBins = 20;

class CalibrationReport {
 public:
  struct Bin {
    int64_t count = 0, correct = 0;
    double confidence = 0;  // summed
    double mean_confidence() const { return count > 0 ? confidence / static_cast<double>(count) : 0; }
    double accuracy() const { return count > 0 ? static_cast<double>(correct) / static_cast<double>(count) : 0; }
  };
  // One prediction: its largest probability, whether that token came, and the entropy of the whole distribution in nats.
  void add(double confidence, bool correct, double entropy);

  const std::array<Bin, kCalibrationBins>& bins() const { return bins_; }
  int64_t count() const { return count_; }
  double expected_error() const;  // Σ_b n_b/N·|accuracy − confidence|
  double accuracy() const;
  double confidence() const;
  double entropy() const { return count_ > 0 ? entropy_ / static_cast<double>(count_) : 0; }

 private:
  std::array<Bin, kCalibrationBins> bins_{};
  int64_t count_ = 0;
  double entropy_ = 0;
};

CalibrationReport measure_calibration(const AnalysisInput& input);

}  // namespace fairway
