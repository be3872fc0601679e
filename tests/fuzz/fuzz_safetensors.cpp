// Any bytes as a weight file: refused, or every tensor can be read to its end. The mutator makes headers whose tensors tile the
// data, changes one thing, and keeps the header's length true.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/rng.h"
#include "fuzz/targets.h"
#include "model/safetensors.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using fairway::Rng;

constexpr const char* kTypes[] = {"F32", "F64", "BF16", "I32", "U16", "U8"};
constexpr uint64_t kSizes[] = {4, 8, 2, 4, 2, 1};

std::string odd_value(Rng& rng) {
  constexpr const char* kValues[] = {
      "0",  "1",    "2",    "3",           "-1",         "4294967296",           "9223372036854775808",
      "{}", "null", "true", "1.5",         "1e3",        "18446744073709551615", "18446744073709551616",
      "[]", "\"\"", "[0]",  "68719476736", "2147483648", "[[[[[[[[[[]]]]]]]]]]"};
  return kValues[rng.below(std::size(kValues))];
}

// A file whose tensors tile the data, with one value replaced in half of the cases.
std::string made_file(Rng& rng) {
  std::string header = "{\"__metadata__\":{\"looped\":\"1\"}";
  uint64_t offset = 0;
  const uint64_t tensors = rng.below(4);
  uint64_t faulty = rng.below(2) == 0 ? rng.below(8 * (tensors + 1)) : ~uint64_t{0}, place = 0;
  const auto value = [&](uint64_t number) { return place++ == faulty ? odd_value(rng) : std::to_string(number); };
  for (uint64_t i = 0; i < tensors; ++i) {
    const size_t type = rng.below(std::size(kTypes));
    uint64_t elements = 1;
    std::string shape;
    for (uint64_t axes = rng.below(5); axes > 0; --axes) {
      const uint64_t extent = rng.below(8) == 0 ? 0 : 1 + rng.below(4);
      elements *= extent;
      if (!shape.empty()) shape += ',';
      shape += value(extent);
    }
    const uint64_t end = offset + elements * kSizes[type];
    header += std::string(",\"") + static_cast<char>('a' + rng.below(8)) + "\":{\"dtype\":\"" + kTypes[type] +
              "\",\"shape\":[" + shape + "],\"data_offsets\":[" + value(offset) + ',' + value(end) + "]}";
    offset = end;
  }
  header += '}';
  uint64_t bytes = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &bytes, 8);
  return file + header + std::string(offset, 'x');
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  Rng rng(seed);
  std::string text(reinterpret_cast<const char*>(data), size);
  uint64_t header = 0;
  if (size >= 8) std::memcpy(&header, data, 8);
  if (size < 8 || header > size - 8 || rng.below(4) != 0) text = made_file(rng), std::memcpy(&header, text.data(), 8);
  if (rng.below(2) == 0) {
    std::string head = text.substr(8, header), tail = text.substr(8 + header);
    std::string& part = rng.below(8) == 0 ? tail : head;
    const size_t before = part.size();
    part.resize(before + 32);
    part.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(part.data()), before, part.size()));
    header = rng.below(64) == 0 ? rng.next_u64() : head.size();
    std::memcpy(text.data(), &header, 8);
    text = text.substr(0, 8) + head + tail;
  }
  const size_t used = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_note.claim = size;
  try {
    const auto file = fairway::Safetensors::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    uint64_t sum = 0;
    for (const auto& [name, tensor] : file.tensors()) {
      for (size_t i = 0; i < tensor.spec.bytes(); ++i) sum += static_cast<uint64_t>(tensor.data[i]);
    }
    if (sum > 255 * size) std::abort();  // tensors overlap
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  Rng rng(5);
  for (int i = 0; i < 16; ++i) seeds.push_back(made_file(rng));
  return seeds;
}
