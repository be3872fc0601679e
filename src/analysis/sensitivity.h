// What rounding costs, matrix by matrix (scoring spec §7.2, §4.13): one matrix on an integer grid, the rest untouched, plain
// loss on the same tokens; then every matrix of a layer together, then all of them. Differences are paired: target by target
// against the loss of the untouched weights.
#pragma once

#include <string>
#include <vector>

#include "analysis/token_rows.h"
#include "quant/op_runner.h"
#include "quant/tensor_plan.h"

namespace fairway {

struct LossChange {
  double nats = 0;   // mean change of a target's loss
  double error = 0;  // standard error of that mean
};

struct MatrixSensitivity {
  std::string name;  // tensor_name()
  QuantRole role = QuantRole::q;
  int64_t layer = 0, weights = 0;
  std::vector<LossChange> change;   // for each of the widths
  std::vector<double> mean_square;  // of W − dequantized, likewise
};

struct SensitivityReport {
  std::vector<int> bits;                        // the widths, in the order asked for
  double loss = 0;                              // of the untouched weights, nats per token
  std::vector<MatrixSensitivity> matrices;      // by role, then layer
  std::vector<std::vector<LossChange>> layers;  // [layer][width]
  std::vector<LossChange> all;                  // [width]

  // Nats that the first width saves over the second on matrix i, and the same for each million bits that it costs.
  double upgrade(size_t i) const;
  double upgrade_per_mbit(size_t i) const;
};

// The weights are changed in place while this runs and are back when it ends, also by an exception.
SensitivityReport measure_sensitivity(const AnalysisInput& input, OpSite site, const std::vector<int>& bits);

}  // namespace fairway
