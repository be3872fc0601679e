// Things remember what they are or were made with: by a hash, or by the value itself where that is short. Where two of them
// meet (weights and shards, a score and a score, a receipt and an artifact, a run and its checkpoint) they are compared by
// differences() and by nothing else. Who asks tells only which kinds matter there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairway {

enum class IdentityKind : uint8_t {
  text,
  tokenizer,
  artifact,
  recipe,
  shards,
  byte_counts,
  form,  // an artifact's weights or weights as trained
  targets,
  bytes,
  whole,
  mode,
  context,
  stride,
  documents,
  settings,
  legal
};

struct Identities {
  struct Trait {
    IdentityKind kind;
    std::vector<std::string> names;  // any of them names it: a tokenizer by what it means, or by its file as older things do
  };
  std::string by;             // the file that tells
  std::vector<Trait> traits;  // what it does not tell is absent

  // Adds what the names tell; empty ones tell nothing.
  Identities& tell(IdentityKind kind, std::vector<std::string> names);
  bool tells(IdentityKind kind) const;
};
Identities tokenizer_identity(std::vector<std::string> names, std::string by);

struct IdentityDifference {
  IdentityKind kind;
  std::string have, other;   // as they are shown: "SHA-256 0123456789ab…", or the value
  std::string text() const;  // "tokenizer SHA-256 … and …"
};
const char* name_of(IdentityKind kind);

// All that both tell and have no name of in common, in the order of the kinds.
std::vector<IdentityDifference> differences(const Identities& have, const Identities& other);

// InputError for the first: "FILE: this tokenizer (SHA-256 …) is not the one that OTHER was made with (SHA-256 …); remedy".
void require_same(const Identities& have, const Identities& made_with, std::string_view remedy);

}  // namespace fairway
