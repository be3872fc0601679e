#include "tokenizer/tokenizer.h"

#include <fmt/core.h>
#include <sentencepiece_processor.h>

#include "base/error.h"
#include "tokenizer/bpe_encoder.h"
#include "tokenizer/text_changes.h"
#include "tokenizer/utf8.h"

namespace sentencepiece::logging {
void SetMinLogLevel(int level);  // exported by the library, declared in a header it does not install
}

namespace fairway {

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) { return from_bytes(read_model_file(path), path.string()); }

Tokenizer Tokenizer::from_bytes(std::string bytes, const std::string& name) {
  const ModelFile model = parse_model_file(bytes, name);  // before the library sees it
  return {model, std::move(bytes), name};
}

Tokenizer::Tokenizer(const ModelFile& model, std::string file, const std::string& name)
    : Vocabulary(model, std::move(file), name), processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  constexpr int kSilent = 3;
  sentencepiece::logging::SetMinLogLevel(kSilent);
  const auto status = processor_->LoadFromSerializedProto(bytes());
  if (!status.ok()) throw InputError(fmt::format("{}: not a usable SentencePiece model: {}", name, status.ToString()));
  encoder_ = BpeEncoder::make(model);  // of a model that the library has taken
  const NormalizerRules& rules = model.normalizer;
  if (rules.map.empty() && !rules.dummy_prefix && !rules.collapse_spaces && rules.escape_spaces && model.byte_fallback)
    for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(find(fmt::format("<0x{:02X}>", byte)));
}

void Tokenizer::encode(std::string_view text, std::vector<int>& ids) const {
  lossless() ? encode_parts(text, ids) : encode_text_part(text, ids);
}

void Tokenizer::encode_text_part(std::string_view text, std::vector<int>& ids) const {
  encoder_ ? encoder_->encode(text, ids) : encode_by_library(text, ids);
}

// The rules would take U+2581 for a space, and bytes that are no character for U+FFFD.
void Tokenizer::encode_parts(std::string_view text, std::vector<int>& ids) const {
  ids.clear();
  std::vector<int> part;
  size_t from = 0;
  const auto flush = [&](size_t end) {
    if (end > from) encode_text_part(text.substr(from, end - from), part), ids.insert(ids.end(), part.begin(), part.end());
  };
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const size_t character = utf8_character(rest), bytes = rest.starts_with(kSpaceMark) ? kSpaceMark.size() : 1;
    if (character > 0 && bytes == 1) {
      at += character;
      continue;
    }
    flush(at);
    for (const char c : rest.substr(0, bytes)) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    from = at += bytes;
  }
  flush(text.size());
}

void Tokenizer::encode_by_library(std::string_view text, std::vector<int>& ids) const {
  const auto status = processor_->Encode({text.data(), text.size()}, &ids);
  if (!status.ok()) throw WorkError(fmt::format("{}: SentencePiece could not encode a text: {}", name(), status.ToString()));
}

void Tokenizer::encode_surfaces(std::string_view text, std::vector<int>& ids, std::vector<size_t>& bytes) const {
  ids.clear();
  bytes.clear();
  const auto encoded = processor_->EncodeAsImmutableProto({text.data(), text.size()});
  for (size_t i = 0; i < encoded.pieces_size(); ++i) {
    const auto piece = encoded.pieces(static_cast<int>(i));
    ids.push_back(static_cast<int>(piece.id()));
    bytes.push_back(piece.surface().size());
  }
}

std::vector<int> Tokenizer::encode(std::string_view text) const {
  std::vector<int> ids;
  encode(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int> ids) const {
  for (const int id : ids)
    if (id < 0 || id >= vocab())
      throw InputError(fmt::format("{}: token {} is outside its vocabulary of {}", name(), id, vocab()));
  if (lossless()) return text_as_read(*this, ids);
  std::string text;
  const auto status = processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) throw WorkError(fmt::format("{}: SentencePiece could not decode tokens: {}", name(), status.ToString()));
  return text;
}

}  // namespace fairway
