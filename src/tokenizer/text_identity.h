// Which text a stream of tokens stands for, whatever tokenizer made it: scores of two tokenizers compare, through bits per
// byte, where their texts are the same.
#pragma once

#include <cstdint>
#include <span>

#include "tokenizer/vocabulary.h"

namespace fairway {

// SHA-256 of the documents' text as the tokenizer normalised it, a NUL before each; of CaseOps with its capitals put back.
std::string text_identity(std::span<const uint16_t> tokens, const Vocabulary& tokenizer);

}  // namespace fairway
