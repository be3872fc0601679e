// A text as an artifact's code, and back byte for byte. The file:
//   "FWTX", version, method; 8 bytes each of the artifact's SHA-256 and the tokenizer's identity; the text's length (varint)
//   and CRC-32; the code; CRC-32 of everything before.
// Method 1: the number of tokens (varint), then one range-coded stream of tokens and edits (tokenizer/text_changes.h).
// Method 0: bytes, each told by the one before: for what is no text, and wherever it is shorter. Method 2: the bytes as they
// are, where nothing is shorter.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "textcode/token_code.h"
#include "tokenizer/tokenizer.h"

namespace fairway::textcode {

inline constexpr uint64_t kMostTextBytes = uint64_t{1} << 28;

struct TextCodec {
  const Tokenizer* tokenizer = nullptr;
  std::string artifact;                                                 // SHA-256 of its file
  std::string name;                                                     // that file, in errors
  std::function<std::unique_ptr<TokenPredictor>(int64_t tokens)> open;  // called for texts that have tokens
  TokenProgress progress;
};

struct TextCodeFile {
  int method = 0;
  std::string_view artifact, tokenizer;  // the first bytes of their SHA-256
  uint64_t length = 0;
  uint32_t checksum = 0;
  std::string_view code;
};
// InputError "NAME: …" for bytes that are no such file, damaged or of another version.
TextCodeFile parse_text_code(std::string_view bytes, const std::string& name);

std::string compress_text(std::string_view text, const TextCodec& codec);
// InputError for a file of another artifact or tokenizer, or whose text is not what its checksum says.
std::string decompress_text(std::string_view bytes, const std::string& name, const TextCodec& codec);

}  // namespace fairway::textcode
