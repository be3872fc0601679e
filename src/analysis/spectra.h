// How much of its rank each matrix uses (scoring spec §7.1): from its singular values s_1 >= s_2 >= …
#pragma once

#include <string>
#include <vector>

#include "analysis/progress.h"
#include "base/thread_pool.h"
#include "model/param_store.h"
#include "quant/tensor_plan.h"

namespace fairway {

// The smallest r with s_1² + … + s_r² >= share·Σ s².
int64_t rank_holding(const std::vector<double>& singular, double share);

struct Spectrum {
  std::string name;  // tensor_name()
  QuantRole role = QuantRole::q;
  int64_t layer = 0, rows = 0, cols = 0;
  int64_t rank95 = 0, rank99 = 0;
  double utilization = 0;  // rank99/min(rows, cols)
  double stable_rank = 0;  // Σ s²/s_1²
  double largest = 0, least = 0;
  double condition = 0;  // s_1/s_n; infinite where s_n is zero
};

struct RoleSpectrum {  // means over the layers
  QuantRole role = QuantRole::q;
  int64_t matrices = 0;
  double utilization = 0, utilization95 = 0, stable_rank = 0, condition = 0;
};

struct SpectraReport {
  std::vector<Spectrum> matrices;  // by role, then layer
  std::vector<RoleSpectrum> roles;
};
// The layers' matrices Q, K, V, O, up, down.
SpectraReport measure_spectra(const ParamStore& weights, const Recipe& recipe, ThreadPool& pool,
                              const AnalysisProgress& progress);

const char* role_name(QuantRole role);  // "Q" … "down"; one of the layers' matrices
int64_t layer_of(const TensorPlan& plan, int64_t layers);

}  // namespace fairway
