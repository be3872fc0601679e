// The analyses as JSON sections of analysis.json and as tables for a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/calibration_error.h"
#include "analysis/head_scores.h"
#include "analysis/logit_lens.h"
#include "analysis/rate_curves.h"
#include "analysis/sensitivity.h"
#include "analysis/spectra.h"

namespace fairway::app {

struct AnalysisOutput {
  nlohmann::ordered_json json;
  std::string text;
};

// bits_per_nat: bits per byte that one nat per token is on the tokens looked at.
AnalysisOutput describe(const SpectraReport& report);
AnalysisOutput describe(const RateReport& report);
AnalysisOutput describe(const SensitivityReport& report, double bits_per_nat);
AnalysisOutput describe(const std::vector<HeadScore>& heads);
AnalysisOutput describe(const CalibrationReport& report);
AnalysisOutput describe(const std::vector<LensLayer>& layers, double bits_per_nat);

}  // namespace fairway::app
