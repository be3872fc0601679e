// A SentencePiece BPE tokenizer (spec §1.2): a vocabulary, text to ids and back.
#pragma once

#include <memory>
#include <span>

#include "tokenizer/vocabulary.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace fairway {

class BpeEncoder;

// Immutable after loading; encode and decode may be called from many threads at once.
class Tokenizer : public Vocabulary {
 public:
  static Tokenizer load(const std::filesystem::path& path);
  static Tokenizer from_bytes(std::string bytes, const std::string& name = "tokenizer");
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  void encode(std::string_view text, std::vector<int>& ids) const;  // replaces `ids`; neither BOS nor EOS is added
  std::vector<int> encode(std::string_view text) const;
  // What the library gives: the definition of encode(), which is quicker for the models that BpeEncoder takes.
  void encode_by_library(std::string_view text, std::vector<int>& ids) const;
  bool has_own_encoder() const { return encoder_ != nullptr; }
  // The same ids, and the bytes of `text` before normalisation that each stands for. Of the bytes that a character without a
  // piece falls back to, the last stands for all of it and the others for nothing.
  void encode_surfaces(std::string_view text, std::vector<int>& ids, std::vector<size_t>& bytes) const;
  std::string decode(std::span<const int> ids) const;  // InputError for an id outside the vocabulary
  // Its rules change nothing: no character is replaced, no blank dropped, and what has no piece falls back to bytes. Such a
  // tokenizer takes any bytes here (those that are no UTF-8, and U+2581 itself, as byte pieces) and gives them back.
  bool lossless() const { return !byte_ids_.empty(); }

 private:
  Tokenizer(const ModelFile& model, std::string bytes, const std::string& name);
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  void encode_parts(std::string_view text, std::vector<int>& ids) const;
  void encode_text_part(std::string_view text, std::vector<int>& ids) const;
  std::unique_ptr<BpeEncoder> encoder_;  // null: the library encodes
  std::vector<int> byte_ids_;            // of all bytes; empty unless the tokenizer is lossless
};

}  // namespace fairway
