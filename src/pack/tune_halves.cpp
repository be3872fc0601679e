#include "pack/tune_halves.h"

#include <cmath>

#include "base/half.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

constexpr double kRate = 0.006;  // of the first step, beside a tensor's typical magnitude; falls to nothing
constexpr double kFirstDecay = 0.9, kSecondDecay = 0.99, kSmallestRoot = 1e-12;

// A tensor of halves where its values and gradients lie, with Adam's moments.
struct TunedHalves {
  QuantizedTensor* tensor;
  float *values, *gradients;
  std::vector<double> now, first, second;
  double typical = 0;

  TunedHalves(QuantizedTensor& of, const ParamStore& store) : tensor(&of) {
    const ParamBank& bank = store.bank(of.bank);
    const int64_t at = std::max<int64_t>(of.slice, 0) * of.count();
    values = bank.value.as<float>() + at;
    gradients = bank.grad.as<float>() + at;
    for (const uint16_t half : of.halves) now.push_back(from_half(half));
    first.resize(now.size());
    second.resize(now.size());
    for (const double x : now) typical += x * x / static_cast<double>(now.size());
    typical = std::sqrt(typical);
  }
  void step(int64_t count, double rate) {
    const double seen1 = 1 - std::pow(kFirstDecay, count), seen2 = 1 - std::pow(kSecondDecay, count);
    for (size_t i = 0; i < now.size(); ++i) {
      const double g = typical * static_cast<double>(gradients[i]);
      first[i] = kFirstDecay * first[i] + (1 - kFirstDecay) * g;
      second[i] = kSecondDecay * second[i] + (1 - kSecondDecay) * g * g;
      now[i] -= rate * typical * (first[i] / seen1) / (std::sqrt(second[i] / seen2) + kSmallestRoot);
      values[i] = static_cast<float>(now[i]);
    }
  }
};

}  // namespace

void tune_halves(QuantizedModel& model, KlDivergence& divergence) {
  if (!divergence.has_gradient()) return;
  divergence.take(model);
  std::vector<TunedHalves> all;
  for (QuantizedTensor& tensor : model.tensors)
    if (tensor.coding == TensorCoding::half) all.emplace_back(tensor, divergence.weights());
  std::vector<Tensor> values, gradients;
  for (const TunedHalves& one : all) {
    const ParamBank& bank = divergence.weights().bank(one.tensor->bank);
    values.push_back(bank.value), gradients.push_back(bank.grad);
  }
  for (int64_t t = 0; t < kTuningSteps; ++t) {
    divergence.gradient(t, gradients);
    for (TunedHalves& one : all) one.step(t + 1, kRate * (1 - static_cast<double>(t) / kTuningSteps));
    divergence.changed(values);
  }
  for (const TunedHalves& one : all)
    for (size_t i = 0; i < one.now.size(); ++i) one.tensor->halves[i] = to_half(static_cast<float>(one.now[i]));
}

}  // namespace fairway
