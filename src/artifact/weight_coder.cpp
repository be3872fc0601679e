#include "artifact/weight_coder.h"

#include <bit>
#include <cmath>

#include "artifact/rans.h"
#include "artifact/shape_fit.h"
#include "base/error.h"

namespace fairway {
namespace {

constexpr int64_t kTrialWeights = 1 << 17;  // how much of a tensor is coded to choose how
constexpr int kModes[] = {0,
                          kByColumn,
                          kByRow,
                          kByColumn | kByRow,
                          kByColumn | kFading,
                          kByColumn | kByRow | kFading,
                          kByColumn | kCentred,
                          kByColumn | kByRow | kFading | kCentred};
constexpr int kModeBits = 4, kUsualStrength = 3;

struct Choice {
  int mode = 0, largest = 0;
  bool fresh = true;  // begins with a shape of its own; else goes on from what the stream has learned
  WeightShape shape;
};

int extent_bits(const Choice& choice, int level) {
  return std::bit_width(static_cast<unsigned>((choice.mode & kCentred) != 0 ? kZeroSymbol : std::min(level, kZeroSymbol)));
}

int header_bits(const Choice& choice, const Choice& before, int level) {
  if (!choice.fresh) return choice.mode == before.mode ? 1 : 2 + kModeBits;
  return 2 + kModeBits + WeightShape::kScaleBits + WeightShape::kSpreadBits + WeightShape::kStrengthBits +
         extent_bits(choice, level);
}

// 0: goes on as before; 10: goes on in another mode; 11: begins anew.
void put_header(FineEncoder& rans, const Choice& choice, const Choice& before, int level) {
  const bool same = !choice.fresh && choice.mode == before.mode;
  rans.put_bits(same ? 0 : 1, 1);
  if (same) return;
  rans.put_bits(choice.fresh ? 1 : 0, 1);
  rans.put_bits(static_cast<uint32_t>(choice.mode), kModeBits);
  if (!choice.fresh) return;
  rans.put_bits(static_cast<uint32_t>(choice.shape.scale), WeightShape::kScaleBits);
  rans.put_bits(static_cast<uint32_t>(choice.shape.spread), WeightShape::kSpreadBits);
  rans.put_bits(static_cast<uint32_t>(choice.shape.strength), WeightShape::kStrengthBits);
  rans.put_bits(static_cast<uint32_t>(choice.largest), extent_bits(choice, level));
}

Choice get_header(FineDecoder& rans, const Choice& before, const ShapedModels& models, int level, const std::string& where) {
  Choice choice = before;
  choice.fresh = false;
  if (rans.get_bits(1) != 0) {
    choice.fresh = rans.get_bits(1) != 0;
    choice.mode = static_cast<int>(rans.get_bits(kModeBits));
  }
  if (choice.fresh) {
    choice.shape.scale = static_cast<int>(rans.get_bits(WeightShape::kScaleBits));
    choice.shape.spread = static_cast<int>(rans.get_bits(WeightShape::kSpreadBits));
    choice.shape.strength = static_cast<int>(rans.get_bits(WeightShape::kStrengthBits));
    choice.largest = static_cast<int>(rans.get_bits(extent_bits(choice, level)));
  } else if (!models.any() || before.largest == 0) {
    throw InputError(where + "a tensor continues from a previous one, but there is none");
  }
  return choice;
}

struct Counter {  // what coding would cost
  static constexpr bool kReadsWeights = true;
  double bits = 0;
  void run(const uint8_t* classes, const int8_t* q, int64_t n, ShapedModels& models) {
    static const std::vector<float> kCost = [] {
      std::vector<float> cost(FineModel::kScale);
      for (uint32_t f = 1; f < FineModel::kScale; ++f)
        cost[f] = std::log2(static_cast<float>(FineModel::kScale) / static_cast<float>(f));
      return cost;
    }();
    float sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      FineModel& model = models[classes[k]];
      sum += kCost[model.range(q[k] + kZeroSymbol).freq];
      model.note(q[k] + kZeroSymbol);
    }
    bits += static_cast<double>(sum);
  }
};

struct Putter {
  static constexpr bool kReadsWeights = true;
  FineEncoder& rans;
  void run(const uint8_t* classes, const int8_t* q, int64_t n, ShapedModels& models) {
    for (int64_t k = 0; k < n; ++k) {
      FineModel& model = models[classes[k]];
      rans.put(model.range(q[k] + kZeroSymbol));
      model.note(q[k] + kZeroSymbol);
    }
  }
};

struct Getter {
  static constexpr bool kReadsWeights = false;
  FineDecoder& rans;
  void run(const uint8_t* classes, int8_t* q, int64_t n, ShapedModels& models) {
    for (int64_t k = 0; k < n; ++k) {
      FineModel& model = models[classes[k]];
      const int symbol = rans.get(model);
      model.note(symbol);
      q[k] = static_cast<int8_t>(symbol - kZeroSymbol);
    }
  }
};

struct NoModels {
  void require(uint64_t) {}
  void adapt() {}
};
// What a mode would have to code.
struct Measurer {
  static constexpr bool kReadsWeights = true;
  Histogram histogram{};
  bool wraps = false;  // a difference of −128 has no symbol
  void run(const uint8_t*, const int8_t* d, int64_t n, NoModels&) {
    for (int64_t k = 0; k < n; ++k) {
      wraps |= d[k] == -128;
      ++histogram[static_cast<size_t>(std::max<int>(d[k], -kZeroSymbol) + kZeroSymbol)];
    }
  }
  int largest() const {
    int out = 0;
    for (int v = 1; v <= kZeroSymbol; ++v) {
      if (histogram[static_cast<size_t>(kZeroSymbol + v)] + histogram[static_cast<size_t>(kZeroSymbol - v)] > 0) out = v;
    }
    return out;
  }
};

Measurer measured(const WeightBlock& block, int mode) {
  Measurer measurer;
  NoModels none;
  WeightWalk(mode, {}, block.cols, block.trellis)(block.q, block.rows, none, measurer);
  return measurer;
}

// Tries ways to code a tensor, after the stream so far.
class Chooser {
 public:
  Chooser(const WeightBlock& block, const ShapedModels& models, const Choice& before)
      : block_(block), models_(models), before_(before), rows_(std::min(block.rows, kTrialWeights / block.cols + 1)) {}

  Choice choose() {
    const Measurer plain = measured(block_, 0), centred = measured(block_, kCentred);
    best_.largest = plain.largest();
    FAIRWAY_ASSERT(best_.largest <= block_.level, "a quantized weight lies beyond its grid");
    if (best_.largest == 0) return best_;
    const Choice flat = shaped(plain), moved = shaped(centred);
    for (const int mode : kModes) {
      const bool centre = (mode & kCentred) != 0;
      if (centre && centred.wraps) continue;
      Choice choice = centre ? moved : flat;
      choice.mode = mode;
      consider(choice);
    }
    if (consider(best_, 1)) {
      consider(best_, 0);
    } else if (consider(best_, 5)) {
      consider(best_, 7);
    }
    go_on(best_.mode, best_.largest);
    const bool centre = (before_.mode & kCentred) != 0;
    if (before_.mode != best_.mode && !(centre && centred.wraps)) go_on(before_.mode, centre ? moved.largest : flat.largest);
    return best_;
  }

 private:
  static Choice shaped(const Measurer& measurer) {
    Choice choice;
    choice.largest = measurer.largest();
    choice.shape = fitted_shape(measurer.histogram, {.strength = kUsualStrength});
    return choice;
  }
  void go_on(int mode, int largest) {
    if (!models_.any() || before_.largest < largest) return;
    Choice choice = before_;
    choice.fresh = false, choice.mode = mode;
    consider(choice);
  }
  bool consider(Choice choice, int strength) {
    choice.shape.strength = strength;
    return consider(choice);
  }
  bool consider(const Choice& choice) {
    ShapedModels trial(FineModel::Use::encode);
    if (choice.fresh) {
      trial.begin_shape(choice.shape);
    } else {
      trial = models_;
    }
    trial.begin_tensor(choice.largest, block_.trellis);
    Counter counter;
    counter.bits = header_bits(choice, before_, block_.level);
    WeightWalk(choice.mode, base_of(choice.shape), block_.cols, block_.trellis)(block_.q, rows_, trial, counter);
    if (!(counter.bits < least_)) return false;
    least_ = counter.bits, best_ = choice;
    return true;
  }

  const WeightBlock& block_;
  const ShapedModels& models_;
  const Choice& before_;
  int64_t rows_;
  Choice best_;
  double least_ = INFINITY;
};

}  // namespace

std::string encode_weights(std::span<const WeightBlock> blocks, std::vector<double>* bits) {
  ShapedModels models(FineModel::Use::encode);
  FineEncoder rans;
  size_t total = 0;
  for (const WeightBlock& block : blocks) total += static_cast<size_t>(block.rows * block.cols);
  rans.reserve(total);
  Choice before;
  const auto put = [&](const WeightBlock& block) {
    if (block.rows * block.cols == 0) return;
    const Choice choice = Chooser(block, models, before).choose();
    put_header(rans, choice, before, block.level);
    before = choice;
    if (choice.largest == 0) return;
    if (choice.fresh) models.begin_shape(choice.shape);
    models.begin_tensor(choice.largest, block.trellis);
    Putter putter{rans};
    WeightWalk(choice.mode, base_of(choice.shape), block.cols, block.trellis)(block.q, block.rows, models, putter);
  };
  for (const WeightBlock& block : blocks) {
    const size_t first = rans.count();
    put(block);
    if (bits != nullptr) bits->push_back(rans.bits_since(first));
  }
  return rans.finish();
}

void decode_weights(std::string_view bytes, std::span<const WeightTarget> blocks, const std::string& where) {
  if (bytes.empty()) throw InputError(where + "nothing is stored, not even the coder's state");
  FineDecoder rans(bytes);
  ShapedModels models(FineModel::Use::decode);
  Choice before;
  for (const WeightTarget& block : blocks) {
    if (block.rows * block.cols == 0) continue;
    const Choice choice = before = get_header(rans, before, models, block.level, where);
    if (choice.largest == 0) {
      std::fill_n(block.q, block.rows * block.cols, int8_t{0});
      continue;
    }
    if (choice.fresh) models.begin_shape(choice.shape);
    models.begin_tensor(choice.largest, block.trellis);
    Getter getter{rans};
    WeightWalk(choice.mode, base_of(choice.shape), block.cols, block.trellis)(block.q, block.rows, models, getter);
  }
  if (!rans.ended_well()) throw InputError(where + "the coder's state does not end where encoding began");
}

}  // namespace fairway
