// The pieces of a SentencePiece model and the identity by which shards, runs and artifacts remember it: what counting bytes
// needs. Who encodes or decodes text takes a Tokenizer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/model_file.h"

namespace fairway {

inline constexpr int kPadId = 0, kBosId = 1, kEosId = 2, kUnknownId = 3;

class Vocabulary {
 public:
  static Vocabulary load(const std::filesystem::path& path);
  Vocabulary(ModelFile model, std::string bytes, std::string name);  // `model` as parsed from `bytes`

  int vocab() const { return static_cast<int>(pieces_.size()); }
  const Piece& piece(int id) const;
  int find(std::string_view piece) const;  // -1 when absent

  const std::string& identity() const { return identity_; }                // model_identity() of it
  const std::string& sha256() const { return sha256_; }                    // of the model file
  std::vector<std::string> names() const { return {identity_, sha256_}; }  // for base/identity.h; older things name the file
  const std::string& bytes() const { return bytes_; }                      // the model file itself
  const std::string& name() const { return name_; }                        // in errors

 private:
  std::string name_, bytes_, sha256_, identity_;
  std::vector<Piece> pieces_;
};

std::string read_model_file(const std::filesystem::path& path);

}  // namespace fairway
