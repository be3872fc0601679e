// Any bytes as a weight file: refused, or every tensor can be read to its end. The mutator keeps the header's length true.
#include <cstring>

#include "base/error.h"
#include "params/safetensors.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  static const std::string kHeader =
      R"({"__metadata__":{"looped":"1"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}})";
  std::string text(reinterpret_cast<const char*>(data), size);
  uint64_t header = 0;
  if (size >= 8) std::memcpy(&header, data, 8);
  if (size < 8 || header > size - 8 || seed % 4 == 0)
    text = std::string(8, '\0') + kHeader + std::string(26, 'x'), header = kHeader.size();
  std::string head = text.substr(8, header), tail = text.substr(8 + header);
  std::string& part = seed % 8 == 1 ? tail : head;
  const size_t before = part.size();
  part.resize(before + 32);
  part.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(part.data()), before, part.size()));
  header = seed % 64 == 3 ? seed : head.size();
  std::memcpy(text.data(), &header, 8);
  const std::string file = text.substr(0, 8) + head + tail;
  const size_t used = std::min(file.size(), max_size);
  std::memcpy(data, file.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = fairway::Safetensors::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    uint64_t sum = 0;
    for (const auto& [name, tensor] : file.tensors()) {
      for (size_t i = 0; i < tensor.spec.bytes(); ++i) sum += static_cast<uint64_t>(tensor.data[i]);
    }
    if (sum == ~uint64_t{0}) std::abort();
  } catch (const fairway::InputError&) {}
  return 0;
}
