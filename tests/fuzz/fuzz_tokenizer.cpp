// Any bytes as a tokenizer model: refused, or good enough to encode and decode with.
#include "base/error.h"
#include "tokenizer/byte_tables.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto tokenizer = fairway::Tokenizer::from_bytes(std::string(reinterpret_cast<const char*>(data), size));
    tokenizer.decode(tokenizer.encode("The \xEF\xAC\x81rst e\xCC\x81 \xE2\x84\xA2 12"));
    fairway::make_byte_tables(tokenizer);
  } catch (const fairway::InputError&) {
  } catch (const fairway::WorkError&) {}
  return 0;
}
