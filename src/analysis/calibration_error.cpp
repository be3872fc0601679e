#include "analysis/calibration_error.h"

#include <algorithm>
#include <cmath>

namespace fairway {
namespace {

struct Prediction {
  double confidence = 0, entropy = 0;
  bool correct = false;
};

Prediction predict(std::span<const float> logits, double lse, int32_t target) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  double mean = 0;  // Σ p·ℓ, so that the entropy is lse − Σ p·ℓ
  for (const float logit : logits) mean += std::exp(static_cast<double>(logit) - lse) * static_cast<double>(logit);
  return {std::exp(static_cast<double>(*largest) - lse), lse - mean, largest - logits.begin() == target};
}

}  // namespace

void CalibrationReport::add(double confidence, bool correct, double entropy) {
  const auto bin = static_cast<size_t>(std::clamp(confidence, 0.0, 1.0) * static_cast<double>(kCalibrationBins));
  Bin& b = bins_[std::min(bin, kCalibrationBins - 1)];
  ++b.count;
  b.correct += correct ? 1 : 0;
  b.confidence += confidence;
  ++count_;
  entropy_ += entropy;
}

double CalibrationReport::expected_error() const {
  double sum = 0;
  for (const Bin& b : bins_) sum += static_cast<double>(b.count) * std::abs(b.accuracy() - b.mean_confidence());
  return count_ > 0 ? sum / static_cast<double>(count_) : 0;
}

double CalibrationReport::accuracy() const {
  int64_t correct = 0;
  for (const Bin& b : bins_) correct += b.correct;
  return count_ > 0 ? static_cast<double>(correct) / static_cast<double>(count_) : 0;
}

double CalibrationReport::confidence() const {
  double sum = 0;
  for (const Bin& b : bins_) sum += b.confidence;
  return count_ > 0 ? sum / static_cast<double>(count_) : 0;
}

CalibrationReport measure_calibration(const AnalysisInput& input) {
  CalibrationReport report;
  TokenRows rows(input);
  std::vector<Prediction> predictions;
  rows.each([&](int64_t, int64_t count) {
    predictions.resize(static_cast<size_t>(count * input.row_length));
    input.pool.parallel_for(static_cast<int64_t>(predictions.size()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      predictions[at] = predict(rows.model().logits(i), static_cast<double>(rows.model().lse()[at]), rows.targets()[at]);
    });
    for (const Prediction& p : predictions) report.add(p.confidence, p.correct, p.entropy);
  });
  return report;
}

}  // namespace fairway
