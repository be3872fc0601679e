// GPTQ with the full Hessian (scoring spec §4.5): columns are rounded one by one, most active first, and the error of each is
// spread over those not yet rounded. The factor depends on the Hessian alone, so Q, K and V share it, as do all clips tried.
#pragma once

#include "quant/grid.h"
#include "quant/hessians.h"
#include "quant/output_factor.h"
#include "quant/step_factors.h"

namespace fairway {

inline constexpr int64_t kGptqBlock = 128;
inline constexpr int kDampingRetries = 5;

struct Damping {
  double share = 0.01;  // of the mean diagonal
  double extra = 0;     // of the mean diagonal, added before the first step as some published systems do
};

struct GptqFactor {
  int64_t side = 0;
  std::vector<int32_t> order;    // columns by descending diagonal
  std::vector<uint8_t> dead;     // by column: its inputs were always zero, so its weights become zero
  std::vector<double> diagonal;  // of the damped Hessian, by column
  std::vector<float> upper;      // (C, C) in that order; empty: every damping failed
  std::vector<int8_t> columns;   // classes of steps by column, which `upper` then has in it (step_factors.h); empty: all alike
  double added = 0;              // to the diagonal, all together
  int retries = 0;               // how often damping was multiplied by ten
  uint64_t number = 0;           // equal ones have the same `upper`: a device that has it need not be sent it again

  bool usable() const { return !upper.empty(); }
};
GptqFactor factorize(OpRunner& runner, const Hessian& hessian, const Damping& damping);
uint64_t new_factor_number();  // that no factor of this process has

struct GptqResult {
  std::vector<int8_t> q;  // (rows, cols)
  double loss = 0;        // tr(D·H·Dᵀ) with the Hessian as it was given, D = W − s·q; with outputs tr(G·D·H·Dᵀ)
  std::vector<double> row_losses;  // that add up to it; with outputs once each is counted by its row's counts
};
struct Rounding {
  int bits;                               // levels are at most those of so many
  bool trellis = false;                   // scales are half the steps then
  const OutputFactor* outputs = nullptr;  // null: rows do not make up for each other
};
// With the factor's steps by column; scales are those of weights divided by them.
GptqResult gptq(OpRunner& runner, MatrixView w, const HalfScales& scales, const Rounding& how, const GptqFactor& factor);
// The same weight with each of these scales. No row depends on another but by a trellis, so that all of them are rounded at
// once, which a device does in the time of one.
std::vector<GptqResult> gptq(OpRunner& runner, MatrixView w, std::span<const HalfScales* const> scales, const Rounding& how,
                             const GptqFactor& factor);
GptqFactor plain_factor(int64_t side);  // of inputs that count alike and say nothing of each other

// tr(D·H·Dᵀ) of any error, (rows, C).
double hessian_loss(OpRunner& runner, MatrixView error, const Hessian& hessian);
// W − s·q.
std::vector<float> error_of(MatrixView w, std::span<const int8_t> q, const HalfScales& scales, ThreadPool& pool);

}  // namespace fairway
