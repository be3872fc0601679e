// A tokenizer, texts that are hard to keep, and predictors that need no model.
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "textcode/text_code.h"
#include "tokenizer/case_ops.h"
#include "tokenizer/train_bpe.h"

namespace fairway::textcode {

inline std::string words(size_t bytes, uint64_t seed) {
  static const std::vector<std::string> kWords{"the", "wind", "over", "Green", "fairway", "goes",
                                               "TO",  "a",    "sea",  "hill",  "12"};
  Rng rng(seed);
  std::string out;
  while (out.size() < bytes) out += kWords[rng.below(kWords.size())] + (rng.below(12) == 0 ? "\n" : " ");
  return out;
}

inline const Tokenizer& small_tokenizer(bool case_ops = false) {
  const auto make = [](bool cased) {
    int left = 60;
    BpeOptions options{.vocab = 320};
    if (cased) options.user_symbols.assign(kCaseOps.begin(), kCaseOps.end());
    const auto next = [&](std::string& out) {
      out = words(300, static_cast<uint64_t>(left));
      if (cased) out = encode_case(out);
      return left-- > 0;
    };
    return Tokenizer::from_bytes(train_bpe(next, options));
  };
  static const Tokenizer plain = make(false), cased = make(true);
  return case_ops ? cased : plain;
}

inline std::string random_bytes(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::string out;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(rng.below(256));
  return out;
}

inline std::vector<std::string> hard_texts() {
  using namespace std::string_literals;
  std::vector<std::string> out{"",
                               "a",
                               " ",
                               "\n",
                               "\0"s,
                               "\xFF",
                               "a\0b\0\0c"s,
                               "line\r\nline\r\n\r\nline\r\n",
                               "  leading, trailing  and   several    spaces   ",
                               "\t\tint main() {\n\t  return 0;\t}\n\n\n",
                               "emoji \xF0\x9F\x98\x80\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB end",
                               "the \xEF\xAC\x81rst e\xCC\x81 \xE2\x84\xA2 \xEF\xBC\xA1\xEF\xBC\xA2 \xEF\xB7\xBA wind",
                               "cut \xF0\x9F\x98 short \xC0\xAF \xED\xA0\x80 \xE2\x96\x81mark\xE2\x96\x81",
                               "\xEF\xBB\xBFmark of order\xEE\x80\x81 \xEE\x80\x84\xEE\x80\x82 MixedCase mIX ABC",
                               "\xEF\xBF\xBD\xEF\xBF\xBD of its own",
                               std::string(5000, ' ') + "x" + std::string(3000, '\n'),
                               std::string(4000, 'a'),
                               random_bytes(3000, 1),
                               words(1500, 5) + random_bytes(300, 2) + words(1500, 6)};
  Rng rng(8);
  for (int i = 0; i < 40; ++i) {  // pieces of all of them
    std::string mixed;
    for (int k = 0; k < 6; ++k) {
      const std::string& from = out[rng.below(15)];
      const size_t at = rng.below(from.size() + 1);
      mixed += from.substr(at, rng.below(12)) + words(1 + rng.below(20), rng.next_u64());
    }
    out.push_back(mixed);
  }
  return out;
}

// Counts the tokens of each lane.
class SimplePredictor final : public TokenPredictor {
 public:
  SimplePredictor(int vocab, int64_t lanes, int64_t context = 64)
      : lanes_(lanes),
        context_(context),
        weights_(static_cast<size_t>(lanes), std::vector<uint32_t>(static_cast<size_t>(vocab), 1)) {}
  int64_t lanes() const override { return lanes_; }
  int64_t context() const override { return context_; }
  void restart() override { ++round_; }
  void step(std::span<const int32_t> tokens) override {
    for (size_t lane = 0; lane < weights_.size(); ++lane) weights_[lane][static_cast<size_t>(tokens[lane])] += 30 + round_;
  }
  std::span<const uint32_t> weights(int64_t lane) const override { return weights_[static_cast<size_t>(lane)]; }
  uint64_t total(int64_t lane) const override {
    uint64_t sum = 0;
    for (const uint32_t w : weights(lane)) sum += w;
    return sum;
  }

 private:
  int64_t lanes_, context_;
  uint32_t round_ = 0;
  std::vector<std::vector<uint32_t>> weights_;
};

inline TextCodec simple_codec(const Tokenizer& tokenizer, char artifact = 'a', int64_t most_lanes = 4) {
  TextCodec codec{.tokenizer = &tokenizer, .artifact = std::string(64, artifact), .name = "m.fwy", .open = {}, .progress = {}};
  codec.open = [&tokenizer, most_lanes](int64_t tokens) {
    return std::make_unique<SimplePredictor>(tokenizer.vocab(), lanes_for(tokens, 64, most_lanes));
  };
  return codec;
}

}  // namespace fairway::textcode
