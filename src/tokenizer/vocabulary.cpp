#include "tokenizer/vocabulary.h"

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace fairway {

std::string read_model_file(const std::filesystem::path& path) {
  constexpr uint64_t kMaxModelBytes = uint64_t{256} << 20;
  return read_file(path, kMaxModelBytes);
}

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
  std::string bytes = read_model_file(path);
  ModelFile model = parse_model_file(bytes, path.string());
  return {std::move(model), std::move(bytes), path.string()};
}

Vocabulary::Vocabulary(ModelFile model, std::string bytes, std::string name)
    : name_(std::move(name)),
      bytes_(std::move(bytes)),
      sha256_(sha256_hex(bytes_)),
      identity_(model_identity(model)),
      pieces_(std::move(model.pieces)) {}

const Piece& Vocabulary::piece(int id) const {
  FAIRWAY_ASSERT(id >= 0 && id < vocab(), "a piece outside the vocabulary was asked for");
  return pieces_[static_cast<size_t>(id)];
}

int Vocabulary::find(std::string_view piece) const {
  for (int id = 0; id < vocab(); ++id)
    if (pieces_[static_cast<size_t>(id)].text == piece) return id;
  return -1;
}

}  // namespace fairway
