#include "data/document_encoder.h"

#include <fmt/core.h>

#include "base/error.h"

namespace fairway::data {

DocumentEncoder::DocumentEncoder(const Tokenizer& tokenizer, bool case_ops, Bytes bytes)
    : tokenizer_(tokenizer), tables_(make_byte_tables(tokenizer)), pieces_(tokenizer), bytes_(bytes) {
  if (tokenizer.vocab() > 65536)
    throw InputError(fmt::format("the tokenizer has {} pieces, but shards hold 16-bit tokens", tokenizer.vocab()));
  if (tokenizer.piece(kBosId).type != PieceType::control)
    throw InputError(fmt::format("piece {} of the tokenizer is \"{}\", but it must be the document start", kBosId,
                                 tokenizer.piece(kBosId).text));
  if (case_ops) case_.emplace(tokenizer);
}

uint64_t DocumentEncoder::encode(std::string_view text, std::vector<int>& ids, std::vector<uint16_t>& bytes) const {
  const std::string transformed = case_ ? encode_case(text) : std::string();
  const std::string_view coded = case_ ? transformed : text;
  std::vector<size_t> surfaces;
  const bool by_surface = bytes_ == Bytes::as_written && !tokenizer_.lossless();
  by_surface ? tokenizer_.encode_surfaces(coded, ids, surfaces) : tokenizer_.encode(coded, ids);
  const uint64_t changed = tokenizer_.lossless() ? 0 : changed_bytes(edits_between(pieces_.text(ids), coded));
  ids.insert(ids.begin(), kBosId);
  const std::vector<bool> counted = case_ ? case_->counted(ids) : std::vector<bool>(ids.size(), true);
  bytes.push_back(0);
  for (size_t i = 1; i < ids.size(); ++i) {
    size_t count = 0;
    if (counted[i] && tokenizer_.lossless())
      count = pieces_.bytes(ids[i]);
    else if (counted[i] && by_surface)
      count = surfaces[i - 1];
    else if (counted[i])
      count = static_cast<size_t>(tables_.of(static_cast<uint16_t>(ids[i - 1]), static_cast<uint16_t>(ids[i])));
    if (count > UINT16_MAX)
      throw InputError(
          fmt::format("a token of a document stands for {} bytes of its text (blanks?); byte counts have 16 bits", count));
    bytes.push_back(static_cast<uint16_t>(count));
  }
  return changed;
}

}  // namespace fairway::data
