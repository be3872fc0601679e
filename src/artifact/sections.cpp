#include "artifact/sections.h"

#include <algorithm>
#include <array>

#include "artifact/byte_coder.h"
#include "artifact/general_codecs.h"
#include "base/error.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

constexpr std::array<std::string_view, 6> kNames{"raw", "rans", "brotli", "lzma", "rans", "rans"};

// What learns while it codes takes six times as long to decode, and its first tensors pay for what later ones gain. So it is
// for streams where it saves a thousandth: weights that are not spread as the lanes' fixed tables have it, rows of tokens. In
// long ones it is tried only where lanes end above the entropy, or a sample says that it saves half a percent: rows that differ
// widely, as under clips by percentile with their floor.
constexpr size_t kMostShaped = 1 << 20;
constexpr double kWorthLearning = 0.999, kWorthLearningLong = 0.995;
// Values that repeat, as steps do that rows share, are matched; others keep to our own coder.
constexpr double kWorthMatching = 0.9;
constexpr int64_t kSampleWeights = 1 << 18;

void take_smaller(Section& best, Codec codec, std::string bytes) {
  if (bytes.size() < best.bytes.size()) best = {codec, std::move(bytes)};
}

// `best` holds a coded form already; the general ones are tried beside it where they are asked for.
void try_general(Section& best, std::string_view plain, CodecChoice choice) {
  if (choice == CodecChoice::brotli || choice == CodecChoice::best) take_smaller(best, Codec::brotli, brotli_encode(plain));
  if (choice == CodecChoice::lzma || choice == CodecChoice::best) take_smaller(best, Codec::lzma, lzma_encode(plain));
}

double order0_bytes(std::span<const WeightBlock> blocks) {
  double bits = 0;
  for (const WeightBlock& block : blocks)
    bits += entropy_of({block.q, static_cast<size_t>(block.rows * block.cols)}, block.trellis);
  return bits / 8;
}

size_t weights_in(std::span<const WeightBlock> blocks) {
  size_t count = 0;
  for (const WeightBlock& block : blocks) count += static_cast<size_t>(block.rows * block.cols);
  return count;
}

std::string plain_bytes(std::span<const WeightBlock> blocks) {
  std::string plain;
  plain.reserve(weights_in(blocks));
  for (const WeightBlock& block : blocks)
    plain.append(reinterpret_cast<const char*>(block.q), static_cast<size_t>(block.rows * block.cols));
  return plain;
}

// What states and sizes take beside the symbols is shared out by weights.
std::vector<double> with_frame(std::vector<double> bits, size_t bytes, std::span<const WeightBlock> blocks) {
  double rest = 8 * static_cast<double>(bytes), weights = 0;
  for (const double own : bits) rest -= own;
  for (const WeightBlock& block : blocks) weights += static_cast<double>(block.rows * block.cols);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] += rest * static_cast<double>(blocks[i].rows * blocks[i].cols) / weights;
  return bits;
}

// What is not our own coder. Sizes are compared before anything is allocated.
std::string decode_general(const SectionView& section, size_t bytes, const std::string& where) {
  switch (section.codec) {
    case Codec::brotli: return brotli_decode(section.bytes, bytes, where);
    case Codec::lzma: return lzma_decode(section.bytes, bytes, where);
    case Codec::raw:
    case Codec::rans:
    case Codec::shaped:
    case Codec::lanes: break;
  }
  if (section.bytes.size() != bytes) {
    throw InputError(where + std::to_string(section.bytes.size()) + " bytes are stored, expected " + std::to_string(bytes));
  }
  return std::string(section.bytes);
}

}  // namespace

bool is_short_stream(std::span<const WeightBlock> blocks) { return weights_in(blocks) <= kMostShaped; }

// On rows of the stream's middle tensor.
bool learning_pays(std::span<const WeightBlock> blocks) {
  WeightBlock sample = blocks[blocks.size() / 2];
  if (sample.cols > 0) sample.rows = std::min(sample.rows, kSampleWeights / sample.cols + 1);
  const std::span<const WeightBlock> one(&sample, 1);
  return static_cast<double>(encode_weights(one).size()) < kWorthLearningLong * static_cast<double>(encode_lanes(one).size());
}

bool is_ours(CodecChoice choice) { return choice == CodecChoice::rans || choice == CodecChoice::best; }

std::string_view name_of(Codec codec) { return kNames[static_cast<size_t>(codec)]; }

CodecChoice codec_choice(std::string_view name) {
  if (name == "best") return CodecChoice::best;
  if (name == "rans") return CodecChoice::rans;
  if (name == "brotli") return CodecChoice::brotli;
  if (name == "lzma") return CodecChoice::lzma;
  throw InputError("--codec " + std::string(name) + ": expected best, rans, brotli or lzma");
}

Section encode_text(std::string_view text) {
  Section best{Codec::raw, std::string(text)};
  take_smaller(best, Codec::brotli, brotli_encode(text));
  return best;
}

Section encode_value_section(std::string_view values, size_t width, CodecChoice choice) {
  Section best{Codec::raw, std::string(values)};
  if (is_ours(choice)) take_smaller(best, Codec::rans, encode_values(values, width));
  // Little effort tells whether anything repeats: where it ends above ours, the most would not end a tenth below.
  if (choice == CodecChoice::rans && brotli_encode(values, BrotliEffort::little).size() <= best.bytes.size()) {
    std::string matched = brotli_encode(values);
    if (static_cast<double>(matched.size()) < kWorthMatching * static_cast<double>(best.bytes.size()))
      best = {Codec::brotli, std::move(matched)};
  }
  try_general(best, values, choice);
  return best;
}

Section encode_weight_section(std::span<const WeightBlock> blocks, CodecChoice choice, std::vector<double>* bits,
                              KnownForms known) {
  const std::string plain = choice == CodecChoice::rans ? "" : plain_bytes(blocks);
  Section best{Codec::raw, plain};
  std::vector<double> by_lanes, shaped;
  if (is_ours(choice)) {
    if (known.lanes.empty()) known.lanes = encode_lanes(blocks, bits == nullptr ? nullptr : &by_lanes);
    if (known.lanes.size() < weights_in(blocks))
      best = {Codec::lanes, std::move(known.lanes)};
    else
      best.bytes = plain_bytes(blocks);
    const auto above_entropy = [&] {
      return static_cast<double>(best.bytes.size()) > 1.001 * (known.order0_bytes ? *known.order0_bytes : order0_bytes(blocks));
    };
    if (is_short_stream(blocks) || above_entropy() || (known.learning_pays ? *known.learning_pays : learning_pays(blocks))) {
      std::string learnt =
          known.learnt.empty() ? encode_weights(blocks, bits == nullptr ? nullptr : &shaped) : std::move(known.learnt);
      if (static_cast<double>(learnt.size()) < kWorthLearning * static_cast<double>(best.bytes.size()))
        best = {Codec::shaped, std::move(learnt)};
    }
  }
  try_general(best, plain, choice);
  if (bits != nullptr) {
    bits->clear();
    if (best.codec == Codec::lanes) *bits = with_frame(std::move(by_lanes), best.bytes.size(), blocks);
    if (best.codec == Codec::shaped) *bits = with_frame(std::move(shaped), best.bytes.size(), blocks);
  }
  return best;
}

std::string decode_text(const SectionView& section, size_t bytes, const std::string& where) {
  if (section.codec == Codec::rans || section.codec >= Codec::shaped)
    throw InputError(where + "codec rans is for weights and values only");
  return decode_general(section, bytes, where);
}

std::string decode_value_section(const SectionView& section, size_t width, size_t bytes, const std::string& where) {
  if (section.codec >= Codec::shaped)
    throw InputError(where + "codec " + std::to_string(static_cast<int>(section.codec)) + " is for weights only");
  return section.codec == Codec::rans ? decode_values(section.bytes, width, bytes, where)
                                      : decode_general(section, bytes, where);
}

void add_weight_tasks(const SectionView& section, std::span<const WeightTarget> blocks, const std::string& where,
                      std::vector<WeightTask>& tasks) {
  const auto add = [&](const LaneChunk& chunk, std::span<const WeightTarget> own, double weight) {
    double count = 0;
    for (const WeightTarget& block : own) count += static_cast<double>(block.rows) * static_cast<double>(block.cols);
    tasks.push_back({section, chunk, own, where, weight * count});
  };
  constexpr double kOneState = 5, kLearning = 6;  // against sixteen states and fixed tables
  if (section.codec != Codec::lanes) return add({}, blocks, kLearning);
  for (const LaneChunk& chunk : lane_chunks(section.bytes, blocks, where))
    add(chunk, chunk.blocks, chunk.lockstep ? 1 : kOneState);
}

void run_task(const WeightTask& task, std::span<const WeightTarget> into) {
  switch (task.section.codec) {
    case Codec::lanes: return decode_lane_chunk(task.chunk, into, task.where);
    case Codec::shaped: return decode_weights(task.section.bytes, into, task.where);
    case Codec::rans: throw InputError(task.where + "codec 1 is for values only");
    case Codec::raw:
    case Codec::brotli:
    case Codec::lzma: break;
  }
  size_t total = 0;
  for (const WeightTarget& block : into) total += static_cast<size_t>(block.rows * block.cols);
  const std::string plain = decode_general(task.section, total, task.where);
  const char* place = plain.data();
  for (const WeightTarget& block : into) {
    const int64_t count = block.rows * block.cols;
    std::copy_n(place, count, block.q);
    place += count;
  }
}

}  // namespace fairway
