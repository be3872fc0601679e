#include "artifact/weight_context.h"

namespace fairway {
namespace {

constexpr double kPriorObservations = 128;
using Prior = std::array<uint32_t, 256>;

// Weights g^(v²) by multiplication alone: w(v+1) = w(v)·g^(2v+1). Returns their mean |v|.
double discrete_gaussian(double g, std::array<double, 128>& weights) {
  double step = g, sum = 1, moment = 0;
  weights[0] = 1;
  for (size_t v = 1; v < weights.size(); ++v) {
    weights[v] = weights[v - 1] * step;
    step *= g * g;
    sum += 2 * weights[v], moment += 2 * static_cast<double>(v) * weights[v];
  }
  for (double& w : weights) w /= sum;
  return moment / sum;
}

Prior prior_of_class(int index) {
  const double target = static_cast<double>(mean_of_class(index)) / (1 << kMeanBits);
  std::array<double, 128> weights{};
  double low = 0, high = 1;
  for (int i = 0; i < 48; ++i) {
    const double g = (low + high) / 2;
    (discrete_gaussian(g, weights) < target ? low : high) = g;
  }
  Prior prior{};
  for (int v = -127; v <= 127; ++v) {
    const double count = weights[static_cast<size_t>(v < 0 ? -v : v)] * kPriorObservations * SymbolModel::kObservation;
    const int symbol = v + kZeroSymbol;
    prior[static_cast<size_t>(symbol)] = nearest_count(count);
  }
  return prior;
}

const std::array<Prior, kClasses>& priors() {
  static const std::array<Prior, kClasses> all = [] {
    std::array<Prior, kClasses> out{};
    for (int c = 0; c < kClasses; ++c) out[static_cast<size_t>(c)] = prior_of_class(c);
    return out;
  }();
  return all;
}

}  // namespace

int32_t mean_of_class(int index) {
  const int octave = index / 8, eighth = index % 8;
  return ((2 * (8 + eighth) + 1) << (octave + kMeanBits - 3)) / 16;
}

void ClassModels::prepare(uint64_t classes) {
  for (; classes != 0; classes &= classes - 1) {
    const int index = std::countr_zero(classes);
    if ((known_ >> index & 1) == 0) (*this)[index].begin(priors()[static_cast<size_t>(index)]);
    (*this)[index].refresh(alphabet_, use_);
    known_ |= uint64_t{1} << index, ready_ |= uint64_t{1} << index;
  }
}

void ClassModels::adapt() {
  for (uint64_t left = ready_; left != 0; left &= left - 1) {
    SymbolModel& model = (*this)[std::countr_zero(left)];
    if (model.due()) model.refresh(alphabet_, use_);
  }
}

}  // namespace fairway
