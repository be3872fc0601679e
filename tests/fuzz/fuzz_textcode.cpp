// Any bytes as a compressed text: refused with a sentence, or the text that its checksum names. A predictor without a model
// stands for the artifact, so that edits and tokens behind good sums are reached.
#include <cstring>

#include "artifact/artifact.h"
#include "base/error.h"
#include "fuzz/mutate.h"
#include "fuzz/targets.h"
#include "textcode/made_text.h"

namespace {

using namespace fairway;
using namespace fairway::textcode;

constexpr int64_t kMostTokens = 500;  // of an input that is worked through

TextCodec small_codec() {
  TextCodec codec = simple_codec(small_tokenizer());
  codec.open = [open = codec.open](int64_t tokens) {
    if (tokens > kMostTokens) throw InputError("more tokens than a fuzz input may have");
    return open(tokens);
  };
  return codec;
}

std::string sealed(std::string body) {
  const uint32_t sum = artifact_checksum(body);
  for (int i = 0; i < 4; ++i) body += static_cast<char>(sum >> (8 * i));
  return body;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  constexpr size_t kHead = 22, kSum = 4;  // up to the length; of a file that reaches further mutations spare it
  const size_t changed = LLVMFuzzerMutate(data, size, max_size);
  std::string body(reinterpret_cast<const char*>(data), changed < kSum ? changed : changed - kSum);
  if (seed % 4 != 0 && body.size() > kHead) body.replace(0, kHead, compress_text("the wind", small_codec()), 0, kHead);
  if (seed % 8 == 1 && body.size() > kHead) body[5] = static_cast<char>(seed / 8 % 3);
  const std::string file = seed % 16 == 2 ? body : sealed(body);
  const size_t used = std::min(file.size(), max_size);
  std::memcpy(data, file.data(), used);
  return used;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_note.claim = uint64_t{8} << 20;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (parse_text_code(bytes, "fuzz").length > (1 << 16)) return 0;
    const std::string text = decompress_text(bytes, "fuzz", small_codec());
    fuzz_note.accepted = true;
    if (size % 16 == 0 && text.size() < 4000 &&
        decompress_text(compress_text(text, small_codec()), "again", small_codec()) != text)
      std::abort();
  } catch (const InputError&) {}
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> out;
  for (const std::string& text : hard_texts())
    if (text.size() < 2000) out.push_back(compress_text(text, small_codec()));
  out.push_back(compress_text(words(900, 1), small_codec()));
  return out;
}
