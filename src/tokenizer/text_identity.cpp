#include "tokenizer/text_identity.h"

#include <cstdlib>

#include "base/error.h"
#include "base/sha256.h"
#include "tokenizer/case_ops.h"

namespace fairway {
namespace {

std::string text_of(const Piece& piece) {
  switch (piece.type) {
    case PieceType::byte: return std::string(1, static_cast<char>(std::strtol(piece.text.c_str() + 3, nullptr, 16)));  // <0xNN>
    case PieceType::control:
    case PieceType::unused: return std::string(1, '\0');
    case PieceType::unknown: return "\xEF\xBF\xBD";
    case PieceType::normal:
    case PieceType::user_defined: break;
  }
  std::string text = piece.text;
  for (size_t at = text.find(kSpaceMark); at != std::string::npos; at = text.find(kSpaceMark, at + 1))
    text.replace(at, kSpaceMark.size(), " ");
  return text;
}

// A stream may be cut inside of a document, behind an operator say; then the operators stay as they are.
std::string with_capitals(const std::string& document) {
  try {
    return decode_case(document);
  } catch (const InputError&) {
    return document;
  }
}

}  // namespace

std::string text_identity(std::span<const uint16_t> tokens, const Vocabulary& tokenizer) {
  std::vector<std::string> texts;
  for (int id = 0; id < tokenizer.vocab(); ++id) texts.push_back(text_of(tokenizer.piece(id)));
  const bool case_ops = tokenizer.find(kTitleOp) >= 0;
  Sha256 hash;
  std::string document;
  const auto end_document = [&] {
    if (case_ops) document = with_capitals(document);
    hash.update(document.data(), document.size());
    document.clear();
  };
  for (const uint16_t token : tokens) {
    if (token == kBosId) end_document();
    if (token < texts.size()) document += texts[token];
  }
  end_document();
  return hash.hex();
}

}  // namespace fairway
