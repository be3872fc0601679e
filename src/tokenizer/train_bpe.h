// Training a tokenizer with the challenge's settings (scoring spec §1.1), in process and from memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fairway {

struct BpeOptions {
  int vocab = 1024;
  std::vector<std::string> user_symbols;  // pieces that are never split or merged
  bool lossless = false;                  // no normalisation: Tokenizer::lossless()
};

// Fills `sentence` with the next one and returns true, or returns false at the end.
using SentenceSource = std::function<bool(std::string& sentence)>;

// The serialized model. The library skips sentences over 4192 bytes, so longer ones are cut at white space here; NUL becomes a
// space and the ends are stripped, as the challenge did; not so where blanks are to be learned (lossless). InputError when the
// text cannot fill the vocabulary.
std::string train_bpe(const SentenceSource& next, const BpeOptions& options);

}  // namespace fairway
