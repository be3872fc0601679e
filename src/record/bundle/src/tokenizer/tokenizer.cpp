// A record reads tokens, not text: the pieces, for their bytes, and the identity. Encoding and decoding have no definition.
#include "tokenizer/tokenizer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace sentencepiece {
class SentencePieceProcessor {};
}  // namespace sentencepiece

namespace fairway {

class BpeEncoder {};

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return from_bytes(read_file(path, uint64_t{256} << 20), path.string());
}

Tokenizer Tokenizer::from_bytes(std::string bytes, const std::string& name) {
  Tokenizer tokenizer;
  tokenizer.name_ = name;
  ModelFile model = parse_model_file(bytes, name);
  tokenizer.identity_ = model_identity(model);
  tokenizer.pieces_ = std::move(model.pieces);
  tokenizer.sha256_ = sha256_hex(bytes);
  tokenizer.bytes_ = std::move(bytes);
  return tokenizer;
}

const Piece& Tokenizer::piece(int id) const { return pieces_.at(static_cast<size_t>(id)); }

int Tokenizer::find(std::string_view piece) const {
  for (int id = 0; id < vocab(); ++id)
    if (pieces_[static_cast<size_t>(id)].text == piece) return id;
  return -1;
}

}  // namespace fairway
