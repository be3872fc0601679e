#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "artifact/architecture.h"
#include "artifact/artifact.h"
#include "artifact/byte_reader.h"
#include "artifact/file_layout.h"
#include "artifact/stored_parts.h"
#include "base/file.h"
#include "recipe/model_shape.h"

namespace fairway {
namespace {

constexpr uint64_t kMostFileBytes = uint64_t{1} << 30;

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return out;
}

Codec read_codec(ByteReader& reader, const char* what, const std::string& where) {
  const uint8_t codec = reader.byte(what);
  if (codec > static_cast<uint8_t>(Codec::shaped))
    throw InputError(fmt::format("{}{} has codec {}, expected 0 to 4", where, what, codec));
  return static_cast<Codec>(codec);
}

SectionView read_data(ByteReader& reader, const char* what, const std::string& where) {
  SectionView section;
  section.codec = read_codec(reader, what, where);
  section.bytes = reader.take(reader.varint(what), what);
  return section;
}

std::string read_text(ByteReader& reader, const char* what, const std::string& where) {
  SectionView section;
  section.codec = read_codec(reader, what, where);
  const uint64_t bytes = reader.varint(what);
  if (bytes > kMostTextBytes)
    throw InputError(fmt::format("{}{} claims {} bytes, at most {} are allowed", where, what, bytes, kMostTextBytes));
  section.bytes = reader.take(reader.varint(what), what);
  return decode_text(section, bytes, fmt::format("{}{}: ", where, what));
}

// Magic, version and checksum: what tells whether the rest is worth reading.
std::string_view checked_body(std::string_view bytes, const std::string& where) {
  if (bytes.size() < kMagic.size() || bytes.substr(0, kMagic.size()) != kMagic)
    throw InputError(where + "not a Fairway artifact (it does not begin with FWAY)");
  if (bytes.size() < kMagic.size() + 3 + kChecksumBytes)
    throw InputError(fmt::format("{}{} bytes are too few for an artifact", where, bytes.size()));
  const auto version = static_cast<uint8_t>(bytes[kMagic.size()]);
  if (version < kFirstVersion || version > kVersion)
    throw InputError(
        fmt::format("{}artifact version {}, this program reads versions {} to {}", where, version, kFirstVersion, kVersion));
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + body.size(), kChecksumBytes);
  const uint32_t actual = artifact_checksum(body);
  if (stored != actual)
    throw InputError(
        fmt::format("{}checksum {:08x}, its bytes give {:08x}: the file is damaged or cut short", where, stored, actual));
  return body.substr(kMagic.size() + 1);
}

void read_header(ByteReader& reader, QuantizedModel& model, const std::string& where) {
  const uint8_t flags = reader.byte("the header");
  if ((flags & ~kKnownFlags) != 0) throw InputError(fmt::format("{}flags {:#04x} are not known", where, flags));
  model.looped = (flags & kLoopedFlag) != 0;
  if ((flags & kTokenizerFlag) != 0) model.tokenizer = hex_of(reader.take(kHashBytes, "the tokenizer hash"));
  if ((flags & kRecipeFlag) != 0) model.recipe_hash = hex_of(reader.take(kHashBytes, "the recipe hash"));
  const uint64_t length = reader.varint("the training length");
  if (length > kMostTrainLength)
    throw InputError(fmt::format("{}training length {}, at most {} is possible", where, length, kMostTrainLength));
  model.train_length = static_cast<int64_t>(length);
}

void require_justified(uint64_t claimed, uint64_t allowed, const char* what, const std::string& where) {
  if (claimed > allowed)
    throw InputError(fmt::format("{}claims {} {}; a file of this size may claim at most {}", where, claimed, what, allowed));
}

void read_values(ByteReader& reader, std::vector<QuantizedTensor>& tensors, const std::string& where) {
  for (const ValuePart& part : kValueParts) {
    size_t total = 0;
    for (const QuantizedTensor& tensor : tensors) total += part.bytes(tensor);
    if (total == 0) continue;
    const SectionView section = read_data(reader, part.name, where);
    const std::string values = decode_value_section(section, part.width, total, fmt::format("{}{}: ", where, part.name));
    const char* place = values.data();
    for (QuantizedTensor& tensor : tensors) {
      if (part.bytes(tensor) > 0) std::memcpy(part.place(tensor), place, part.bytes(tensor));
      place += part.bytes(tensor);
    }
  }
}

struct WeightSection {
  SectionView section;
  std::span<const WeightTarget> blocks;
  std::string where;
};

std::vector<WeightSection> read_weight_sections(ByteReader& reader, const WeightStreams<int8_t>& streams,
                                                const std::string& where) {
  std::vector<WeightSection> out;
  for (size_t role = 0; role < streams.size(); ++role) {
    int64_t count = 0;
    for (const WeightTarget& block : streams[role]) count += block.rows * block.cols;
    if (count == 0) continue;
    const std::string what = fmt::format("the {} weights", name_of(static_cast<StreamRole>(role)));
    out.push_back({read_data(reader, what.c_str(), where), streams[role], where + what + ": "});
  }
  return out;
}

template <class Body>
void for_each_index(ThreadPool* pool, size_t count, Body&& body) {
  auto at = [&](int64_t i) { body(static_cast<size_t>(i)); };
  if (pool != nullptr) return pool->parallel_for(static_cast<int64_t>(count), at);
  for (size_t i = 0; i < count; ++i) body(i);
}

// The longest first, so that threads end at about the same time.
void decode_sections(std::vector<WeightSection> sections, ThreadPool* pool) {
  if (pool != nullptr) {
    std::stable_sort(sections.begin(), sections.end(),
                     [](const auto& a, const auto& b) { return a.section.bytes.size() > b.section.bytes.size(); });
  }
  for_each_index(pool, sections.size(),
                 [&](size_t i) { decode_weight_section(sections[i].section, sections[i].blocks, sections[i].where); });
}

}  // namespace

QuantizedModel read_artifact(std::string_view bytes, const std::string& name, const ReadLimits& limits) {
  const std::string where = name + ": ";
  const uint64_t allowed = limits.free_bytes + kExpansion * bytes.size();
  ByteReader reader(checked_body(bytes, where), where);
  QuantizedModel model;
  read_header(reader, model, where);
  model.model = parse_architecture(read_text(reader, "the architecture", where), where);
  if (model.looped && model.model.loop.count == 0)
    throw InputError(where + "is marked as looped, but its architecture loops nothing");
  require_justified(static_cast<uint64_t>(parameter_count(model.model)), allowed, "parameters", where);
  model.tensors = decode_table(read_text(reader, "the tensor table", where), model.model, where);
  require_justified(value_bytes(model.tensors), allowed, "bytes of values", where);
  for_each_index(limits.pool, model.tensors.size(), [&](size_t i) { allocate_values(model.tensors[i]); });
  const auto streams = weight_streams(model.tensors, model.model.layers);
  decode_sections(read_weight_sections(reader, streams, where), limits.pool);
  read_values(reader, model.tensors, where);
  if (reader.left() != 0) throw InputError(fmt::format("{}{} bytes after the last section", where, reader.left()));
  for_each_index(limits.pool, model.tensors.size(), [&](size_t i) { check_values(model.tensors[i], where); });
  return model;
}

QuantizedModel load_artifact(const std::filesystem::path& path, const ReadLimits& limits) {
  return read_artifact(read_file(path, kMostFileBytes), path.string(), limits);
}

bool is_artifact(const std::filesystem::path& path) {
  const InputFile file(path);
  char first[4] = {};
  return file.read_at(first, sizeof first, 0) == sizeof first && std::string_view(first, sizeof first) == kMagic;
}

}  // namespace fairway
