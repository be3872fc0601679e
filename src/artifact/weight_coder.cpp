#include "artifact/weight_coder.h"

#include <cmath>

#include "artifact/byte_reader.h"
#include "artifact/rans.h"
#include "artifact/weight_context.h"
#include "base/error.h"

namespace fairway {
namespace {

constexpr int64_t kTrialWeights = 1 << 17;  // how much of a tensor is coded to choose its mode
constexpr int kModes[] = {0,
                          kByColumn,
                          kByRow,
                          kByColumn | kByRow,
                          kByColumn | kFading,
                          kByColumn | kByRow | kFading,
                          kByColumn | kCentred,
                          kByColumn | kByRow | kFading | kCentred};
// A tensor's header: its mode and, with this bit, the largest |d| and the class of its mean; else those of the one before.
constexpr int kOwnExtent = 16;

struct Counter {  // what coding would cost
  static constexpr bool kReadsWeights = true;
  double bits = 0;
  void run(const uint8_t* classes, const int8_t* q, int64_t n, ClassModels& models) {
    static const std::vector<float> kCost = [] {
      std::vector<float> cost(kScale + 1);
      for (uint32_t f = 1; f <= kScale; ++f) cost[f] = std::log2(static_cast<float>(kScale) / static_cast<float>(f));
      return cost;
    }();
    float sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      SymbolModel& model = models[classes[k]];
      sum += kCost[model.range(q[k] + kZeroSymbol).freq];
      model.note(q[k] + kZeroSymbol);
    }
    bits += static_cast<double>(sum);
  }
};

struct Putter {
  static constexpr bool kReadsWeights = true;
  RansEncoder& rans;
  void run(const uint8_t* classes, const int8_t* q, int64_t n, ClassModels& models) {
    for (int64_t k = 0; k < n; ++k) {
      SymbolModel& model = models[classes[k]];
      rans.put(model.range(q[k] + kZeroSymbol), static_cast<int>(k & 1));
      model.note(q[k] + kZeroSymbol);
    }
  }
};

struct Getter {
  static constexpr bool kReadsWeights = false;
  RansDecoder& rans;
  const std::string& where;
  void run(const uint8_t* classes, int8_t* q, int64_t n, ClassModels& models) {
    for (int64_t k = 0; k < n; ++k) {
      SymbolModel& model = models[classes[k]];
      const int symbol = rans.get(model, static_cast<int>(k & 1));
      model.note(symbol);
      q[k] = static_cast<int8_t>(symbol - kZeroSymbol);
    }
    if (rans.ran_out()) throw InputError(where + "the coded weights end before all are decoded");
  }
};
static_assert(kRunLength <= RansDecoder::kMostPerCheck);

// The largest |d| that a mode would have to code; 128 when a wrapped difference has no symbol.
struct Measurer {
  static constexpr bool kReadsWeights = true;
  int largest = 0;
  void run(const uint8_t*, const int8_t* d, int64_t n, ClassModels&) {
    for (int64_t k = 0; k < n; ++k) largest = std::max(largest, d[k] < 0 ? -d[k] : d[k]);
  }
};

struct Choice {
  int mode = 0, largest = 0, base_class = 0;
};

Choice plain_choice(const WeightBlock& block) {
  int64_t sum = 0;
  Choice choice;
  const int64_t count = block.rows * block.cols;
  for (int64_t i = 0; i < count; ++i) {
    const int magnitude = block.q[i] < 0 ? -block.q[i] : block.q[i];
    sum += magnitude;
    choice.largest = std::max(choice.largest, magnitude);
  }
  if (count > 0) choice.base_class = class_of(static_cast<float>((sum << kMeanBits) / count));
  return choice;
}

Choice best_choice(const WeightBlock& block, const ClassModels& models) {
  const Choice plain = plain_choice(block);
  FAIRWAY_ASSERT(plain.largest <= block.level, "a quantized weight lies beyond its grid");
  if (plain.largest == 0) return plain;
  const int64_t rows = std::min(block.rows, kTrialWeights / block.cols + 1);
  Choice best = plain;
  double least = INFINITY;
  for (const int mode : kModes) {
    Choice choice{mode, plain.largest, plain.base_class};
    if ((mode & kCentred) != 0) {
      ClassModels none(SymbolModel::Use::encode);
      Measurer measurer;
      WeightWalk(mode & kCentred, plain.base_class, block.cols)(block.q, block.rows, none, measurer);
      choice.largest = measurer.largest;
      if (measurer.largest > kZeroSymbol) continue;
    }
    ClassModels trial = models;
    trial.begin_tensor(choice.largest);
    Counter counter;
    WeightWalk(mode, plain.base_class, block.cols)(block.q, rows, trial, counter);
    if (counter.bits < least) least = counter.bits, best = choice;
  }
  return best;
}

// An alphabet a little too wide and a mean a class off cost less than two bytes of header.
bool close_enough(const Choice& before, const Choice& now) {
  return before.largest >= now.largest && before.largest <= now.largest + 2 &&
         std::abs(before.base_class - now.base_class) <= 1;
}

Choice read_choice(ByteReader& reader, const Choice& before, int level, const std::string& where) {
  Choice choice = before;
  const int mode = reader.byte("the coder's header");
  if ((mode & ~kOwnExtent) > kMostMode) throw InputError(where + "coder mode " + std::to_string(mode) + " is not known");
  choice.mode = mode & kMostMode;
  if ((mode & kOwnExtent) != 0) {
    choice.largest = reader.byte("the coder's header");
    choice.base_class = reader.byte("the coder's header");
  }
  const int most = (choice.mode & kCentred) != 0 ? kZeroSymbol : level + 2;
  if (choice.largest > std::min(most, kZeroSymbol)) {
    throw InputError(where + "the coder's alphabet reaches " + std::to_string(choice.largest) + ", the grid ends at " +
                     std::to_string(level));
  }
  if (choice.base_class >= kClasses)
    throw InputError(where + "magnitude class " + std::to_string(choice.base_class) + " is not known");
  return choice;
}

}  // namespace

// The headers of all tensors, then the coded weights.
std::string encode_weights(std::span<const WeightBlock> blocks) {
  ClassModels models(SymbolModel::Use::encode);
  std::string headers;
  RansEncoder rans;
  size_t total = 0;
  for (const WeightBlock& block : blocks) total += static_cast<size_t>(block.rows * block.cols);
  rans.reserve(total);
  Choice before{0, -1, 0};
  for (const WeightBlock& block : blocks) {
    Choice choice = best_choice(block, models);
    const bool reuse = close_enough(before, choice);
    headers += static_cast<char>(choice.mode | (reuse ? 0 : kOwnExtent));
    if (reuse) {
      choice.largest = before.largest, choice.base_class = before.base_class;
    } else {
      headers += static_cast<char>(choice.largest);
      headers += static_cast<char>(choice.base_class);
    }
    before = choice;
    models.begin_tensor(choice.largest);
    Putter putter{rans};
    WeightWalk(choice.mode, choice.base_class, block.cols)(block.q, block.rows, models, putter);
  }
  return headers + rans.finish();
}

void decode_weights(std::string_view bytes, std::span<const WeightBlock> blocks, const std::string& where) {
  ByteReader reader(bytes, where);
  std::vector<Choice> choices;
  Choice before;
  for (const WeightBlock& block : blocks) choices.push_back(before = read_choice(reader, before, block.level, where));
  if (reader.left() < kRansStateBytes) throw InputError(where + "too short for the coder's states");
  RansDecoder rans(bytes.substr(bytes.size() - reader.left()));
  ClassModels models(SymbolModel::Use::decode);
  for (size_t i = 0; i < blocks.size(); ++i) {
    models.begin_tensor(choices[i].largest);
    Getter getter{rans, where};
    WeightWalk(choices[i].mode, choices[i].base_class, blocks[i].cols)(blocks[i].q, blocks[i].rows, models, getter);
  }
  if (!rans.ended_well()) throw InputError(where + "the coded weights do not end where their stream does");
}

}  // namespace fairway
