// Things remember by a hash what they were made with. Where two of them meet, this is the one question that is asked.
#pragma once

#include <string>
#include <string_view>

namespace fairway {

struct Identity {
  std::string hash;  // SHA-256, hexadecimal; empty: not known
  std::string by;    // the file that tells
};

// InputError unless the hashes are equal or one is not known: "FILE: this tokenizer (SHA-256 …) is not the one that OTHER was
// made with (…); remedy".
void require_identity(std::string_view what, const Identity& have, const Identity& made_with, std::string_view remedy);

}  // namespace fairway
