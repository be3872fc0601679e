#include "tokenizer/byte_tables.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace fairway {

ByteTables make_byte_tables(const Vocabulary& tokenizer, int vocab) {
  constexpr std::string_view kSpace = "\xE2\x96\x81";
  if (tokenizer.find(kSpace) < 0)
    throw InputError("the tokenizer has no piece for the space mark U+2581 alone, so bytes cannot be counted with it");
  const auto size = static_cast<size_t>(std::max(tokenizer.vocab(), vocab));
  ByteTables tables{std::vector<uint16_t>(size, 0), std::vector<uint8_t>(size, 0), std::vector<uint8_t>(size, 1)};
  for (int id = 0; id < tokenizer.vocab(); ++id) {
    const auto at = static_cast<size_t>(id);
    const Piece& piece = tokenizer.piece(id);
    if (piece.type == PieceType::control || piece.type == PieceType::unknown || piece.type == PieceType::unused) continue;
    tables.bound[at] = 0;
    if (piece.type == PieceType::byte) {
      tables.base[at] = 1;
      continue;
    }
    const bool lead = std::string_view(piece.text).starts_with(kSpace);
    tables.lead[at] = lead;
    tables.base[at] = static_cast<uint16_t>(std::min<size_t>(piece.text.size() - (lead ? kSpace.size() : 0), UINT16_MAX));
  }
  return tables;
}

int64_t ByteTables::count(std::span<const uint16_t> tokens) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= base.size())
      throw InputError(fmt::format("token {} at {} is outside the vocabulary of {}", tokens[i], i, base.size()));
    if (i > 0) bytes += of(tokens[i - 1], tokens[i]);
  }
  return bytes;
}

}  // namespace fairway
