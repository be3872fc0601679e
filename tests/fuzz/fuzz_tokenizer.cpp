// Any bytes as a tokenizer model: refused, or good enough to encode and decode with.
#include "base/error.h"
#include "fuzz/targets.h"
#include "tokenizer/byte_tables.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train_bpe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto tokenizer = fairway::Tokenizer::from_bytes(std::string(reinterpret_cast<const char*>(data), size));
    tokenizer.decode(tokenizer.encode("The \xEF\xAC\x81rst e\xCC\x81 \xE2\x84\xA2 12\n \xE6\xB0\xB4\xFF the first"));
    fairway::make_byte_tables(tokenizer);
    fuzz_note.accepted = true;
  } catch (const fairway::InputError&) {
  } catch (const fairway::WorkError&) {}
  return 0;
}

namespace {

void put(std::string& out, char tag, const std::string& bytes) {
  out += tag;
  for (size_t left = bytes.size();; left >>= 7) {
    out += static_cast<char>(left >= 128 ? (left & 127) | 128 : left);
    if (left < 128) break;
  }
  out += bytes;
}

// A model of few bytes, so that mutations meet its structure and not only the large character map of a real one.
std::string small_model() {
  std::string model;
  const auto piece = [&](const std::string& text, char type) {
    std::string message;
    put(message, '\x0A', text);
    put(model, '\x0A', message + '\x18' + type);
  };
  piece("<unk>", 2);
  piece("<s>", 3);
  constexpr const char* kHex = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) piece(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", 6);
  for (const char* text : {"\xE2\x96\x81", "t", "h", "e", "th", "\xE2\x96\x81th"}) piece(text, 1);
  put(model, '\x12', std::string("\x18\x02\x98\x02\x01", 5));  // BPE with byte fallback
  std::string map(4 + 1024, '\0');
  map[1] = '\x04';
  std::string normalizer;
  put(normalizer, '\x12', map);
  put(model, '\x1A', normalizer);
  return model;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  int left = 40;
  const auto sentence = [&](std::string& out) {
    out = "the first wind over the green fairway goes to the sea and over the hill";
    return left-- > 0;
  };
  const std::string small = small_model();
  return {small, small, small, fairway::train_bpe(sentence, {.vocab = 300, .user_symbols = {"\xEE\x80\x81"}})};
}
