#include "ops/op_case.h"

#include <cmath>

namespace fairway::ops_test {
namespace {

class Generator {  // splitmix64
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  double next() {  // [0, 1)
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

double rope_value(int64_t position, int64_t column, int64_t rotated) {
  const int64_t half = rotated / 2;
  const double angle =
      static_cast<double>(position) * std::pow(100.0, -static_cast<double>(column % half) / static_cast<double>(half));
  return column < half ? std::cos(angle) : std::sin(angle);
}

double scalar_value(int64_t slot) {
  switch (static_cast<StepScalar>(slot)) {
    case StepScalar::learning_rate_scale: return 0.75;
    case StepScalar::momentum: return 0.95;
    case StepScalar::adam_step: return 3;
    case StepScalar::swa_weight: return 0.25;
  }
  return 0;
}

}  // namespace

std::vector<double> content_of(const Slot& slot, uint64_t seed) {
  Generator random(seed);
  std::vector<double> values(static_cast<size_t>(slot.shape.numel()));
  int64_t start = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    switch (slot.content) {
      case Content::absent: break;
      case Content::uniform:
      case Content::shares: values[i] = static_cast<float>(slot.low + (slot.high - slot.low) * random.next()); break;
      case Content::factor: {
        const int64_t side = slot.shape.last(), apart = at % side - at / side;
        const double value = slot.low + (slot.high - slot.low) * random.next();
        values[i] = apart < 0 ? 0 : static_cast<float>(apart == 0 ? value : 2 * (value - slot.high * 0.75) / std::sqrt(side));
        break;
      }
      case Content::index: values[i] = std::floor(slot.low + (slot.high - slot.low) * random.next()); break;
      case Content::segments:
        if (static_cast<double>(at) >= slot.low && random.next() * slot.high < 1) start = at;
        values[i] = static_cast<double>(start);
        break;
      case Content::rope:
        values[i] = static_cast<float>(rope_value(at / slot.shape.last(), at % slot.shape.last(), slot.shape.last()));
        break;
      case Content::scalars: values[i] = scalar_value(at); break;
    }
  }
  return values;
}

std::string label_of(std::string_view op, const std::vector<Slot>& in) {
  std::string text(op);
  for (const Slot& slot : in) {
    text += ' ';
    text += slot.content == Content::absent ? "-" : slot.shape.text();
  }
  return text;
}

}  // namespace fairway::ops_test
