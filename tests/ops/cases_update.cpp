// Cases of the ops that update parameters and averages.
#include "ops/op_case.h"

namespace fairway::ops_test {
namespace {

const std::vector<Shape>& banks() {
  static const std::vector<Shape> shapes{{1, 1, 1},   {2, 1, 7},   {2, 7, 1},   {3, 3, 5},    {2, 5, 3},   {1, 16, 16},
                                         {2, 17, 33}, {2, 65, 31}, {1, 64, 64}, {11, 13, 17}, {1, 33, 130}};
  return shapes;
}

std::vector<int64_t> counts() {
  std::vector<int64_t> sizes = kSizes;
  sizes.push_back(5000);
  return sizes;
}

}  // namespace

std::vector<OpCase<Fill>> cases(const Fill&) {
  std::vector<OpCase<Fill>> list;
  for (int64_t n : counts()) list.push_back({{.value = 0.3}, {uniform({n})}});
  return list;
}

std::vector<OpCase<SumSquares>> cases(const SumSquares&) {
  std::vector<OpCase<SumSquares>> list;
  for (int64_t n : counts()) list.push_back({{.slot = 2}, {uniform({n}), uniform_f64({4}, 0, 1)}});
  return list;
}

std::vector<OpCase<ClipCoefficient>> cases(const ClipCoefficient&) {
  std::vector<OpCase<ClipCoefficient>> list;
  for (double max_norm : {0.0, 0.3, 1e6})
    list.push_back({{.max_norm = max_norm}, {uniform_f64({5}, 0, 1), uniform_f64({2}, 0, 1)}});
  return list;
}

std::vector<OpCase<AccumulateScaled>> cases(const AccumulateScaled&) {
  std::vector<OpCase<AccumulateScaled>> list;
  for (int64_t n : counts()) {
    list.push_back({{.factor = 0.125}, {uniform({n}), uniform({n}), uniform_f64({2}, 0.5, 1)}});
    list.push_back({{.factor = 0.5, .overwrite = true}, {uniform({n}), uniform({n}), absent()}});
    // Exact before they are rounded, so that no backend may come to a neighbour.
    list.push_back({{.factor = 0.5, .round = true}, {uniform({n}), uniform({n}), absent()}});
    list.push_back({{.overwrite = true, .round = true}, {uniform({n}), uniform({n}), absent()}});
  }
  return list;
}

std::vector<OpCase<AdamWUpdate>> cases(const AdamWUpdate&) {
  const AdamWUpdate op{.learning_rate = 0.035, .weight_decay = 0.04, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
  std::vector<OpCase<AdamWUpdate>> list;
  for (int64_t n : counts())
    for (bool clipped : {false, true})
      list.push_back({op,
                      {uniform({n}), uniform({n}), uniform({n}), uniform({n}, 0, 1),
                       clipped ? uniform_f64({2}, 0.2, 0.9) : absent(), step_scalars()}});
  return list;
}

std::vector<OpCase<MuonMomentum>> cases(const MuonMomentum&) {
  std::vector<OpCase<MuonMomentum>> list;
  for (const Shape& bank : banks())
    for (bool row_norm : {false, true})
      list.push_back({{.row_norm = row_norm},
                      {uniform(bank), uniform(bank), row_norm ? uniform_f64({2}, 0.2, 0.9) : absent(), step_scalars()}});
  return list;
}

std::vector<OpCase<NewtonSchulz>> cases(const NewtonSchulz&) {
  std::vector<OpCase<NewtonSchulz>> list;
  // The iterations multiply small singular values by several hundred, and their f32 error with them.
  NewtonSchulz rows_only = newton_schulz_rule("turbo4");
  rows_only.post_norm_columns = false;
  for (const Shape& bank : banks()) {
    for (const char* rule : {"ns5", "polar5", "turbo4"})
      list.push_back({newton_schulz_rule(rule), {uniform(bank)}, {.nmse = 1e-8}});
    list.push_back({rows_only, {uniform(bank)}, {.nmse = 1e-8}});
  }
  return list;
}

std::vector<OpCase<MuonApply>> cases(const MuonApply&) {
  std::vector<OpCase<MuonApply>> list;
  for (const Shape& bank : banks())
    list.push_back({{.learning_rate = 0.025, .weight_decay = 0.04}, {uniform(bank), uniform(bank), step_scalars()}});
  return list;
}

std::vector<OpCase<Lerp>> cases(const Lerp&) {
  std::vector<OpCase<Lerp>> list;
  for (int64_t n : counts()) {
    list.push_back({{.weight = 0.003}, {uniform({n}), uniform({n}), absent()}});
    list.push_back({{.weight = 0, .slot = StepScalar::swa_weight}, {uniform({n}), uniform({n}), step_scalars()}});
  }
  return list;
}

}  // namespace fairway::ops_test
