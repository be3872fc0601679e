// Streams of weights as version 1 wrote them: two states, classes of absolute magnitude, headers in bytes. Read only.
#include "artifact/byte_reader.h"
#include "artifact/rans.h"
#include "artifact/weight_coder.h"
#include "artifact/weight_context.h"
#include "base/error.h"

namespace fairway {
namespace {

// A tensor's header: its mode and, with this bit, the largest |d| and the class of its mean; else those of the one before.
constexpr int kOwnExtent = 16;

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

struct Choice {
  int mode = 0, largest = 0, base_class = 0;
};

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

void decode_weights_v1(std::string_view bytes, std::span<const WeightTarget> blocks, const std::string& where) {
  ByteReader reader(bytes, where);
  std::vector<Choice> choices;
  Choice before;
  for (const WeightTarget& block : blocks) choices.push_back(before = read_choice(reader, before, block.level, where));
  if (reader.left() < kRansStateBytes) throw InputError(where + "too short for the coder's states");
  RansDecoder rans(bytes.substr(bytes.size() - reader.left()));
  ClassModels models(SymbolModel::Use::decode);
  for (size_t i = 0; i < blocks.size(); ++i) {
    models.begin_tensor(choices[i].largest);
    Getter getter{rans, where};
    const WeightWalk::Base base{choices[i].base_class, mean_of_class(choices[i].base_class)};
    WeightWalk(choices[i].mode, base, blocks[i].cols)(blocks[i].q, blocks[i].rows, models, getter);
  }
  if (!rans.ended_well()) throw InputError(where + "the coded weights do not end where their stream does");
}

}  // namespace fairway
