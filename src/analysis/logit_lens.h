// What each layer would predict if it were the last (scoring spec §7.4): RMSNorm of the residual stream after it, then the
// model's own head and softcap.
#pragma once

#include <vector>

#include "analysis/token_rows.h"

namespace fairway {

struct LensLayer {
  int64_t layer = 0, pass = 0;  // pass: a looped layer has several
  double loss = 0;              // nats per token
  double accuracy = 0;
};
// In order of execution. Parallel lanes are merged as they are at the end of the model.
std::vector<LensLayer> measure_lens(const AnalysisInput& input);

}  // namespace fairway
