// The coded parts of an artifact. A section is a codec byte, the coded length and the bytes; how many bytes come out is never
// read from the data sections but follows from the architecture and the tensor table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/lane_coder.h"
#include "artifact/weight_coder.h"

namespace fairway {

// As stored. rans is for values. Weights have shaped, and since version 3 lanes.
enum class Codec : uint8_t { raw, rans, brotli, lzma, shaped, lanes };
enum class CodecChoice : uint8_t { rans, brotli, lzma, best };  // as asked for
std::string_view name_of(Codec codec);
CodecChoice codec_choice(std::string_view name);  // "best", "rans", "brotli", "lzma"; InputError else

struct Section {
  Codec codec = Codec::raw;
  std::string bytes;
};
Section encode_text(std::string_view text);  // the smaller of raw and Brotli
// rans: ours, and Brotli where values repeat.
Section encode_value_section(std::string_view values, size_t width, CodecChoice choice);
// What is known of a stream already; the rest is found out.
struct KnownForms {
  std::string lanes, learnt;           // what encode_lanes and encode_weights give; empty: not known
  std::optional<bool> learning_pays;   // learning_pays()
  std::optional<double> order0_bytes;  // by the entropy of each tensor
};
// `bits`, where given, gets what each block took, a share of the coder's states and sizes in it; of codecs that are not ours
// nothing.
Section encode_weight_section(std::span<const WeightBlock> blocks, CodecChoice choice, std::vector<double>* bits = nullptr,
                              KnownForms known = {});
bool is_ours(CodecChoice choice);  // whether our own coder is tried
// Whether a stream is short enough that what learns is tried on it in any case; else a sample of it is asked.
bool is_short_stream(std::span<const WeightBlock> blocks);
bool learning_pays(std::span<const WeightBlock> blocks);

struct SectionView {
  Codec codec = Codec::raw;
  std::string_view bytes;
};
std::string decode_text(const SectionView& section, size_t bytes, const std::string& where);
std::string decode_value_section(const SectionView& section, size_t width, size_t bytes, const std::string& where);
// A part of a section that is decoded apart from the others.
struct WeightTask {
  SectionView section;
  LaneChunk chunk;  // of lanes
  std::span<const WeightTarget> blocks;
  std::string where;
  double cost = 0;  // about the time it takes, in weights of lanes
};
// InputError, beginning with `where`, when the section does not hold what it must; so does run_task.
void add_weight_tasks(const SectionView& section, std::span<const WeightTarget> blocks, const std::string& where,
                      std::vector<WeightTask>& tasks);
void run_task(const WeightTask& task, std::span<const WeightTarget> into);  // of the same sizes as task.blocks

}  // namespace fairway
