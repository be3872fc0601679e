// What a SentencePiece model file holds, read by our own parser of the protobuf wire format. The library trusts tables inside
// the file (the normaliser's double array is walked without bounds), so every model is checked here before it is handed over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chars_map.h"
#include "tokenizer/utf8.h"

namespace fairway {

enum class PieceType : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct Piece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

struct ModelFile {
  std::vector<Piece> pieces;
  int model_type = 1;  // 1 unigram, 2 BPE
  bool byte_fallback = false;
  bool space_as_suffix = false;  // pieces end with a space instead of beginning with it
  NormalizerRules normalizer;
};

// Throws InputError naming `name`, the byte and what was expected there.
ModelFile parse_model_file(std::string_view bytes, const std::string& name);

// SHA-256 of what encoding and the counting of bytes depend on: the pieces' texts, types and scores by id, the normaliser, the
// rules. Files that differ elsewhere, in the notes of their training say, are the same tokenizer.
std::string model_identity(const ModelFile& model);

}  // namespace fairway
