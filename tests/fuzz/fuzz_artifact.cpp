// Any bytes as an artifact: refused, or read into a model that writes back. The mutator works on the file's parts and seals the
// checksum again, so that changes reach the decoders behind it.
#include <cstring>

#include "artifact/byte_coder.h"
#include "artifact/file_parts.h"
#include "artifact/general_codecs.h"
#include "base/error.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace fairway;

constexpr uint64_t kFree = 1 << 18;  // small claims only: an input must stay quick

std::string mutated(std::string bytes, size_t most) {
  const size_t size = bytes.size();
  bytes.resize(std::max(size + 16, size_t{32}));
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, std::min(bytes.size(), most)));
  return bytes;
}

// The forms a part may take, coded once: compressing costs more than all the rest.
std::vector<FileParts::Part> forms_of(const FileParts::Part& part) {
  std::vector<FileParts::Part> forms(4, part);
  forms[1].codec = 2, forms[1].bytes = brotli_encode(part.bytes);
  forms[2].codec = 3, forms[2].bytes = lzma_encode(part.bytes);
  if (part.text) return forms;
  forms[3].codec = 1, forms[3].bytes = encode_values(part.bytes, part.bytes.size() % 2 == 0 ? 2 : 1);
  if (part.bytes.find('\x80') != std::string::npos) return forms;
  std::string values = part.bytes;
  const WeightBlock block{reinterpret_cast<int8_t*>(values.data()), static_cast<int64_t>(values.size() / 8), 8, 127};
  forms.push_back(part);
  forms[4].codec = 1, forms[4].bytes = encode_weights({&block, 1});
  return forms;
}

struct Seed {
  FileParts file;
  std::vector<std::vector<FileParts::Part>> forms;
};
Seed seed_of(const QuantizedModel& model) {
  Seed seed{parts_of(model), {}};
  for (const FileParts::Part& part : seed.file.parts) seed.forms.push_back(forms_of(part));
  return seed;
}

std::string changed_parts(uint32_t number, size_t most) {
  static const Seed kSeeds[] = {seed_of(made_model(tiny_architecture(), 1)), seed_of(made_model(tiny_architecture(), 2, 0.4))};
  Rng rng(number);
  const Seed& seed = kSeeds[rng.below(2)];
  FileParts file = seed.file;
  if (rng.below(16) == 0) file.flags = static_cast<char>(rng.below(256));
  for (uint64_t changes = 1 + rng.below(2); changes > 0; --changes) {
    const size_t index = rng.below(file.parts.size());
    FileParts::Part& part = file.parts[index];
    part = seed.forms[index][rng.below(seed.forms[index].size())];
    part.bytes = mutated(part.bytes, most);
    if (part.text && (part.codec == 0 || rng.below(4) == 0)) part.claim = part.bytes.size();
    if (rng.below(32) == 0) part.coded_size = static_cast<int64_t>(rng.below(1 << 20));
  }
  return file.body();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::string body(reinterpret_cast<const char*>(data), size < 4 ? size : size - 4);
  body = seed % 2 == 0 || size < 8 ? changed_parts(seed, max_size) : mutated(body, max_size);
  const std::string file = seed % 64 == 1 ? body : sealed(body);
  const size_t used = std::min(file.size(), max_size);
  std::memcpy(data, file.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const QuantizedModel model = read_artifact({reinterpret_cast<const char*>(data), size}, "fuzz", {.free_bytes = kFree});
    if (size % 256 == 0 && !(read_artifact(write_artifact(model), "again") == model)) std::abort();
  } catch (const InputError&) {}
  return 0;
}
