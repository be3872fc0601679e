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
#include "model/shape/model_shape.h"

namespace fairway {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return out;
}

Codec read_codec(ByteReader& reader, const char* what, const std::string& where) {
  const uint8_t codec = reader.byte(what);
  if (codec > static_cast<uint8_t>(Codec::lanes))
    throw InputError(fmt::format("{}{} has codec {}, expected 0 to 5", where, what, codec));
  return static_cast<Codec>(codec);
}

SectionView read_data(ByteReader& reader, const char* what, const std::string& where) {
  SectionView section;
  section.codec = read_codec(reader, what, where);
  section.bytes = reader.take(reader.varint(what), what);
  return section;
}

std::string read_text(ByteReader& reader, const char* what, const std::string& where, uint64_t most = kMostTextBytes) {
  SectionView section;
  section.codec = read_codec(reader, what, where);
  const uint64_t bytes = reader.varint(what);
  if (bytes > most) throw InputError(fmt::format("{}{} claims {} bytes, at most {} are allowed", where, what, bytes, most));
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

// Returns whether the tokenizer itself comes last.
bool read_header(ByteReader& reader, QuantizedModel& model, const std::string& where) {
  const uint8_t flags = reader.byte("the header");
  if ((flags & ~kKnownFlags) != 0) throw InputError(fmt::format("{}flags {:#04x} are not known", where, flags));
  model.looped = (flags & kLoopedFlag) != 0;
  const bool carries = (flags & kOwnTokenizerFlag) != 0;
  if (carries && (flags & kTokenizerFlag) == 0) throw InputError(where + "carries a tokenizer that it does not name");
  if ((flags & kTokenizerFlag) != 0) model.tokenizer = hex_of(reader.take(kHashBytes, "the tokenizer hash"));
  if ((flags & kRecipeFlag) != 0) model.recipe_hash = hex_of(reader.take(kHashBytes, "the recipe hash"));
  const auto length = [&](const std::string& what) {
    const uint64_t tokens = reader.varint(("the " + what).c_str());
    if (tokens > kMostTrainLength)
      throw InputError(fmt::format("{}{} {}, at most {} is possible", where, what, tokens, kMostTrainLength));
    return static_cast<int64_t>(tokens);
  };
  model.train_length = length("training length");
  if ((flags & kSegmentFlag) == 0) return carries;
  model.segment = length("segment length");
  if (model.segment == 0) throw InputError(where + "segment length 0 contradicts the flags");
  return carries;
}

void require_justified(uint64_t claimed, uint64_t allowed, const char* what, const std::string& where) {
  if (claimed > allowed)
    throw InputError(fmt::format("{}claims {} {}; a file of this size may claim at most {}", where, claimed, what, allowed));
}

struct ValueSection {
  const ValuePart* part = nullptr;
  SectionView section;
  size_t bytes = 0;  // that come out
};

std::vector<ValueSection> read_value_sections(ByteReader& reader, const std::vector<QuantizedTensor>& tensors,
                                              const std::string& where) {
  std::vector<ValueSection> out;
  for (const ValuePart& part : kValueParts) {
    size_t total = 0;
    for (const QuantizedTensor& tensor : tensors) total += part.bytes(tensor);
    if (total > 0) out.push_back({&part, read_data(reader, part.name, where), total});
  }
  return out;
}

void decode_values(const ValueSection& from, std::vector<QuantizedTensor>& tensors, const std::string& where) {
  const ValuePart& part = *from.part;
  const std::string values =
      decode_value_section(from.section, part.width, from.bytes, fmt::format("{}{}: ", where, part.name));
  const char* place = values.data();
  for (QuantizedTensor& tensor : tensors) {
    if (part.bytes(tensor) > 0) std::memcpy(part.place(tensor), place, part.bytes(tensor));
    place += part.bytes(tensor);
  }
}

}  // namespace

// What read() has to do. Targets have no memory yet; each task gets its tensors some when it begins.
struct ArtifactReader::Plan {
  WeightStreams<int8_t> streams;
  std::array<std::vector<QuantizedTensor*>, kStreamRoles> tensors;  // of the streams
  struct Task {
    WeightTask weights;
    std::span<QuantizedTensor* const> tensors;  // to read into, as weights.blocks
  };
  std::vector<Task> tasks;
  std::vector<ValueSection> values;

  void read_weight_sections(ByteReader& reader, QuantizedModel& model, const std::string& where) {
    streams = weight_streams(model.tensors, model.model.layers);
    for (QuantizedTensor& t : model.tensors)
      if (t.coding == TensorCoding::integer_rows)
        tensors[static_cast<size_t>(stream_role(t, model.model.layers))].push_back(&t);
    for (size_t role = 0; role < streams.size(); ++role) {
      int64_t count = 0;
      for (const WeightTarget& block : streams[role]) count += block.rows * block.cols;
      if (count == 0) continue;
      const std::string what = fmt::format("the {} weights", name_of(static_cast<StreamRole>(role)));
      std::vector<WeightTask> own;
      add_weight_tasks(read_data(reader, what.c_str(), where), streams[role], where + what + ": ", own);
      size_t first = 0;  // tasks follow each other as their tensors do
      for (WeightTask& task : own) {
        const size_t many = task.blocks.size();
        tasks.push_back({std::move(task), std::span(tensors[role]).subspan(first, many)});
        first += many;
      }
    }
  }
};

ArtifactReader::ArtifactReader(std::string_view bytes, const std::string& name, const ReadLimits& limits)
    : where_(name + ": "), pool_(limits.pool), plan_(std::make_unique<Plan>()) {
  const uint64_t allowed = limits.free_bytes + kExpansion * bytes.size();
  ByteReader reader(checked_body(bytes, where_), where_);
  const bool carries_tokenizer = read_header(reader, model_, where_);
  model_.model = parse_architecture(read_text(reader, "the architecture", where_), where_);
  if (model_.looped && model_.model.loop.count == 0)
    throw InputError(where_ + "is marked as looped, but its architecture loops nothing");
  require_justified(static_cast<uint64_t>(parameter_count(model_.model)), allowed, "parameters", where_);
  model_.tensors = decode_table(read_text(reader, "the tensor table", where_), model_.model, where_);
  require_justified(value_bytes(model_.tensors), allowed, "bytes of values", where_);
  plan_->read_weight_sections(reader, model_, where_);
  plan_->values = read_value_sections(reader, model_.tensors, where_);
  if (carries_tokenizer)
    model_.tokenizer_model = read_text(reader, "the tokenizer", where_, std::min(kMostTokenizerBytes, allowed));
  if (reader.left() != 0) throw InputError(fmt::format("{}{} bytes after the last section", where_, reader.left()));
}

ArtifactReader::~ArtifactReader() = default;

void ArtifactReader::read(const Take& take) {
  // The longest first, so that threads end at about the same time; values are short.
  auto& tasks = plan_->tasks;
  if (pool_ != nullptr)
    std::stable_sort(tasks.begin(), tasks.end(), [](const auto& a, const auto& b) { return a.weights.cost > b.weights.cost; });
  for (QuantizedTensor& tensor : model_.tensors) allocate_few(tensor);
  const auto read_weights = [&](const Plan::Task& task) {
    std::vector<WeightTarget> targets(task.weights.blocks.begin(), task.weights.blocks.end());
    for (size_t i = 0; i < targets.size(); ++i) {
      task.tensors[i]->q.resize(static_cast<size_t>(task.tensors[i]->count()));
      targets[i].q = task.tensors[i]->q.data();
    }
    run_task(task.weights, targets);
    for (QuantizedTensor* tensor : task.tensors) {
      check_weights(*tensor, where_);
      if (take) take(*tensor);
    }
  };
  for_each_index(pool_, tasks.size() + plan_->values.size(), [&](size_t i) {
    if (i < tasks.size()) return read_weights(tasks[i]);
    decode_values(plan_->values[i - tasks.size()], model_.tensors, where_);
  });
  for (const QuantizedTensor& tensor : model_.tensors) check_values(tensor, where_);
}

QuantizedModel read_artifact(std::string_view bytes, const std::string& name, const ReadLimits& limits) {
  ArtifactReader reader(bytes, name, limits);
  reader.read({});
  return std::move(reader.model());
}

QuantizedModel load_artifact(const std::filesystem::path& path, const ReadLimits& limits) {
  return read_artifact(read_file(path, kMostArtifactFileBytes), path.string(), limits);
}

bool is_artifact(const std::filesystem::path& path) {
  const InputFile file(path);
  char first[4] = {};
  return file.read_at(first, sizeof first, 0) == sizeof first && std::string_view(first, sizeof first) == kMagic;
}

}  // namespace fairway
