// A SentencePiece BPE tokenizer (spec §1.2): text to ids and back, the pieces, and the identity by which
// shards, runs and artifacts remember it.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/model_file.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace fairway {

class BpeEncoder;

inline constexpr int kPadId = 0, kBosId = 1, kEosId = 2, kUnknownId = 3;

// Immutable after loading; encode and decode may be called from many threads at once.
class Tokenizer {
 public:
  static Tokenizer load(const std::filesystem::path& path);
  static Tokenizer from_bytes(std::string bytes, const std::string& name = "tokenizer");
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  int vocab() const { return static_cast<int>(pieces_.size()); }
  const Piece& piece(int id) const;
  int find(std::string_view piece) const;  // -1 when absent

  void encode(std::string_view text, std::vector<int>& ids) const;  // replaces `ids`; neither BOS nor EOS is added
  std::vector<int> encode(std::string_view text) const;
  // What the library gives: the definition of encode(), which is quicker for the models that BpeEncoder takes.
  void encode_by_library(std::string_view text, std::vector<int>& ids) const;
  bool has_own_encoder() const { return encoder_ != nullptr; }
  // The same ids, and the bytes of `text` before normalisation that each stands for. Of the bytes that a character without a
  // piece falls back to, the last stands for all of it and the others for nothing.
  void encode_surfaces(std::string_view text, std::vector<int>& ids, std::vector<size_t>& bytes) const;
  std::string decode(std::span<const int> ids) const;  // InputError for an id outside the vocabulary

  const std::string& identity() const { return identity_; }  // model_identity() of it
  const std::string& sha256() const { return sha256_; }      // of the model file
  // The hash names this tokenizer: by its identity, or by its file as older artifacts and manifests do.
  bool answers_to(std::string_view hash) const { return hash == identity_ || hash == sha256_; }
  const std::string& bytes() const { return bytes_; }  // the model file itself

 private:
  Tokenizer();
  std::string name_, bytes_, sha256_, identity_;
  std::vector<Piece> pieces_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::unique_ptr<BpeEncoder> encoder_;  // null: the library encodes
};

}  // namespace fairway
