// Any bytes as an artifact: refused, or read into a model that writes back. The mutator works on the file's parts (a key of the
// architecture, a line of the table, the coded bytes of a section in any of its codecs) and seals the checksum again, so that
// changes reach the decoders behind it. Seeds are files of today, one of them with streams long enough for sixteen states in
// lockstep, and the kept ones of every version.
#include <cstring>

#include "artifact/byte_coder.h"
#include "artifact/file_parts.h"
#include "artifact/general_codecs.h"
#include "base/error.h"
#include "fuzz/kept_files.h"
#include "fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace fairway;

constexpr uint64_t kSmallClaim = 1 << 18;  // of most inputs, so that they stay quick

std::string mutated(std::string bytes, size_t most) {
  const size_t size = bytes.size();
  bytes.resize(std::max(size + 16, size_t{32}));
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, std::min(bytes.size(), most)));
  return bytes;
}

using Forms = std::vector<FileParts::Part>;  // of one part, coded once: compressing costs more than all the rest
struct Seed {
  QuantizedModel model;
  FileParts file;
  std::vector<Forms> forms;
};

Forms general_forms(const FileParts::Part& part) {
  Forms forms(3, part);
  forms[1].codec = 2, forms[1].bytes = brotli_encode(part.bytes);
  forms[2].codec = 3, forms[2].bytes = lzma_encode(part.bytes);
  return forms;
}
void add_form(Forms& forms, char codec, std::string bytes) {
  forms.push_back(forms[0]);
  forms.back().codec = codec, forms.back().bytes = std::move(bytes);
}

// Up and down matrices of 393,216 weights: lanes take sixteen states from there on.
ModelRecipe long_architecture() {
  ModelRecipe m = tiny_architecture();
  m.dim = 128, m.layers = 1, m.mlp_hidden = 3072;
  m.value_embed.layers = {0};
  return m;
}

Seed seed_of(QuantizedModel model) {
  Seed seed{std::move(model), {}, {}};
  seed.file = parts_of(seed.model);
  const auto streams = weight_streams(std::as_const(seed.model.tensors), seed.model.model.layers);
  for (const FileParts::Part& part : seed.file.parts) {
    seed.forms.push_back(general_forms(part));
    if (part.text) continue;
    bool weights = false;
    for (size_t role = 0; role < streams.size(); ++role) {
      if (part.name != name_of(static_cast<StreamRole>(role))) continue;
      add_form(seed.forms.back(), 4, encode_weights(streams[role]));
      add_form(seed.forms.back(), 5, encode_lanes(streams[role]));
      weights = true;
    }
    if (weights) continue;
    for (const ValuePart& values : kValueParts) {
      if (part.name == values.name) add_form(seed.forms.back(), 1, encode_values(part.bytes, values.width));
    }
  }
  return seed;
}

// Its weights are always lanes; other codecs would only take longer than with the small seeds.
Seed long_seed() {
  Seed seed{made_model(long_architecture(), 4, 0.5), {}, {}};
  for (QuantizedTensor& t : seed.model.tensors) {
    if (t.bank != ParamId::up) continue;
    t.trellis = true;
    t.q = gaussian_on_trellis(t.rows, t.cols, 2.4, std::min(largest_level(t.bits), kTrellisLevel), 4);
  }
  seed.file = parts_of(seed.model);
  const auto streams = weight_streams(std::as_const(seed.model.tensors), seed.model.model.layers);
  for (FileParts::Part& part : seed.file.parts) {
    for (size_t role = 0; role < streams.size(); ++role)
      if (part.name == name_of(static_cast<StreamRole>(role))) part.codec = 5, part.bytes = encode_lanes(streams[role]);
    seed.forms.push_back(Forms(1, part));
  }
  return seed;
}

const std::vector<Seed>& seeds() {
  static const std::vector<Seed> kSeeds{
      seed_of(made_model(tiny_architecture(), 1)), seed_of(made_model(tiny_architecture(), 2, 0.4)),
      seed_of(made_model(tiny_architecture(), 3, 9)), seed_of(made_on_trellis(tiny_architecture(), 4, 3)),
      seed_of(made_on_trellis(tiny_architecture(), 5, 12))};
  return kSeeds;
}
const Seed& the_long_seed() {
  static const Seed kSeed = long_seed();
  return kSeed;
}
constexpr uint64_t kLongOneIn = 32;  // an input takes a hundred times as long

// One key of the architecture gets a value that means something: a limit, a list, nothing.
std::string changed_key(const std::string& text, Rng& rng) {
  constexpr const char* kValues[] = {
      "0",   "1",   "2",   "3",   "4", "8",   "16",  "64",    "255",  "1024",     "65536",   "-1", "2147483648", "4294967296",
      "1e9", "0.5", "nan", "inf", "",  "0,1", "1,0", "1,1,1", "none", "additive", "1048576", "12", "16777216"};
  const size_t place = rng.below(text.size()), line = text.rfind('\n', place);
  const size_t begin = line == std::string::npos ? 0 : line + 1, equals = text.find('=', begin), end = text.find('\n', begin);
  if (equals == std::string::npos || end == std::string::npos || equals > end) return text;
  return text.substr(0, equals + 1) + kValues[rng.below(std::size(kValues))] + text.substr(end);
}

std::string changed_table(std::vector<QuantizedTensor> tensors, Rng& rng) {
  QuantizedTensor& tensor = tensors[rng.below(tensors.size())];
  const auto any = static_cast<int64_t>(rng.below(rng.below(2) == 0 ? 64 : uint64_t{1} << 50));
  switch (rng.below(7)) {
    case 0: tensor.rows = any; break;
    case 1: tensor.cols = any; break;
    case 2: tensor.slice = any - 1; break;
    case 3: tensor.correction.rank = any; break;
    case 4:
      tensor.coding = static_cast<TensorCoding>(rng.below(3)), tensor.bits = static_cast<int>(rng.below(10)),
      tensor.trellis ^= rng.below(2) == 0;
      break;
    case 5: std::swap(tensor.rows, tensor.cols); break;
    default: std::swap(tensor, tensors[rng.below(tensors.size())]);
  }
  return encode_table(tensors);
}

void change_part(FileParts::Part& part, const Seed& seed, size_t index, size_t most, Rng& rng) {
  const uint64_t kind = rng.below(4);
  if (part.text && kind > 0) {  // stays readable, so that what follows is held against it
    part = seed.forms[index][0];
    part.bytes = index == 0 ? changed_key(part.bytes, rng) : changed_table(seed.model.tensors, rng);
    part.claim = part.bytes.size();
    return;
  }
  if (part.codec >= 4 && rng.below(4) == 0) part.codec = 1;  // which weights may not have
  part.bytes = mutated(part.bytes, most);
  if (part.text && (part.codec == 0 || rng.below(4) == 0)) part.claim = part.bytes.size();
  if (rng.below(32) == 0) part.coded_size = static_cast<int64_t>(rng.below(1 << 20));
}

std::string changed_parts(uint32_t number, size_t most) {
  Rng rng(number);
  const Seed& seed = rng.below(kLongOneIn) == 0 ? the_long_seed() : seeds()[rng.below(seeds().size())];
  FileParts file = seed.file;
  file.version = static_cast<char>(2 + rng.below(2));
  if (rng.below(16) == 0) file.flags = static_cast<char>(rng.below(256));
  for (size_t i = 0; i < file.parts.size(); ++i) file.parts[i] = seed.forms[i][rng.below(seed.forms[i].size())];
  for (uint64_t changes = 1 + rng.below(2); changes > 0; --changes) {
    const size_t index = rng.below(file.parts.size());
    change_part(file.parts[index], seed, index, most, rng);
  }
  return file.body();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::string body(reinterpret_cast<const char*>(data), size < 4 ? size : size - 4);
  body = seed % 4 != 0 || size < 8 ? changed_parts(seed, max_size) : mutated(body, max_size);
  const std::string file = seed % 64 == 1 ? body : sealed(body);
  const size_t used = std::min(file.size(), max_size);
  std::memcpy(data, file.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // One input in 256 meets the limit that files meet.
  const uint64_t free = size > 0 && data[size - 1] == 0 ? kFreeBytes : kSmallClaim;
  fuzz_note.claim = free + kExpansion * size;
  QuantizedModel model;
  try {
    model = read_artifact({reinterpret_cast<const char*>(data), size}, "fuzz", {.free_bytes = free});
  } catch (const InputError&) {
    return 0;
  }
  fuzz_note.accepted = true;
  if (size % 256 == 0 && !(read_artifact(write_artifact(model), "again") == model))
    std::abort();  // what throws here is a fault
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> files;
  for (const Seed& seed : seeds()) {
    files.push_back(seed.file.file());
    for (const CodecChoice codec : {CodecChoice::rans, CodecChoice::best}) files.push_back(write_artifact(seed.model, {codec}));
  }
  files.push_back(the_long_seed().file.file());
  for (const std::span<const unsigned char> kept : kKeptFiles) files.emplace_back(kept.begin(), kept.end());
  return files;
}
