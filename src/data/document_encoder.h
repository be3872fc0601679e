// A document as tokens, and the bytes that each of them stands for: what shards and the byte counts beside them hold.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/byte_tables.h"
#include "tokenizer/case_tokens.h"
#include "tokenizer/text_changes.h"

namespace fairway::data {

class DocumentEncoder {
 public:
  // normalised: by the tokenizer's tables (scoring spec §1.2). as_written: of the text before normalisation (record spec §4),
  // by the library's encoder, which is several times slower. Of a lossless tokenizer both are the bytes of its pieces.
  enum class Bytes : uint8_t { normalised, as_written };
  DocumentEncoder(const Tokenizer& tokenizer, bool case_ops,
                  Bytes bytes);  // InputError for a tokenizer that shards cannot have

  // Replaces `ids`, the first of which is BOS; appends one count for each to `bytes`. Returns how many bytes of the text the
  // tokenizer changes (tokenizer/text_changes.h). Safe from many threads.
  uint64_t encode(std::string_view text, std::vector<int>& ids, std::vector<uint16_t>& bytes) const;

 private:
  const Tokenizer& tokenizer_;
  ByteTables tables_;
  ReadPieces pieces_;
  std::optional<CaseTokens> case_;
  Bytes bytes_;
};

// The rule for fineweb_val_bytes_*.bin. Stock tokenizers are scored by the normalised text everywhere (scoring spec §1.1).
inline DocumentEncoder::Bytes held_out_bytes(bool case_ops) {
  return case_ops ? DocumentEncoder::Bytes::as_written : DocumentEncoder::Bytes::normalised;
}

}  // namespace fairway::data
