// SentencePiece's text normalisation: the model's character map, longest rule first, then spaces collapsed and written U+2581.
// The installed library does not offer it by itself. Equal to what the library does inside its encoder, byte for byte.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chars_map.h"

namespace fairway {

class Normalizer {
 public:
  // `frozen`: single characters that no rule may touch. The rules must ask for spaces to be escaped.
  Normalizer(NormalizerRules rules, std::vector<std::string> frozen);
  void run(std::string_view text, std::string& out) const;  // replaces `out`; text that is no UTF-8 gives U+FFFD per byte

 private:
  struct Prefix {
    size_t length = 0;  // bytes of the text
    std::string_view normal;
  };
  Prefix prefix(std::string_view text) const;

  NormalizerRules rules_;
  std::vector<std::string> frozen_;
  std::array<bool, 256> frozen_lead_{};
  // What an ASCII byte becomes when no rule can reach past it into a following ASCII byte; `self_`: it stays, and is no space.
  std::array<bool, 256> alone_{}, self_{};
  std::array<std::string, 128> ascii_;
};

}  // namespace fairway
