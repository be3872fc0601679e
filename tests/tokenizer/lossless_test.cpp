// Tokenizers without normalisation give every text back byte for byte; what the others change is told exactly.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "tokenizer/case_ops.h"
#include "tokenizer/case_tokens.h"
#include "tokenizer/text_changes.h"
#include "tokenizer/train_bpe.h"

namespace fairway {
namespace {

Tokenizer trained_on_blanks(bool lossless, bool case_ops = false) {
  int left = 50;
  const auto next = [&](std::string& out) {
    out = "  the first wind\n\tgoes over the Green fairway\r\n\nand  12 to the sea   ";
    if (case_ops) out = encode_case(out);
    return left-- > 0;
  };
  BpeOptions options{.vocab = 330, .lossless = lossless};
  if (case_ops) options.user_symbols.assign(kCaseOps.begin(), kCaseOps.end());
  return Tokenizer::from_bytes(train_bpe(next, options));
}

// Letters, blanks, marks of spaces, case operators, emoji, and bytes that are nothing at all.
std::string wild_text(Rng& rng) {
  static const std::vector<std::string> kParts{"the",
                                               " ",
                                               "  ",
                                               "\n",
                                               "\r\n",
                                               "\t",
                                               "\xE2\x96\x81",
                                               "\xEE\x80\x82",
                                               "\xEF\xAC\x81",
                                               "e\xCC\x81",
                                               "\xF0\x9F\x98\x80",
                                               "\xFF",
                                               "\xE2\x96",
                                               std::string(1, '\0'),
                                               "Green",
                                               "ABC",
                                               "12",
                                               "\xEF\xBB\xBF"};
  std::string out;
  for (uint64_t i = rng.below(30); i > 0; --i) {
    out += kParts[rng.below(kParts.size())];
    if (rng.below(4) == 0) out += static_cast<char>(rng.below(256));
  }
  return out;
}

TEST(LosslessTokenizer, GivesRandomTextsBack) {
  const Tokenizer tokenizer = trained_on_blanks(true);
  ASSERT_TRUE(tokenizer.lossless());
  ASSERT_TRUE(tokenizer.has_own_encoder());
  Rng rng(1);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = wild_text(rng);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    const TextTokens tokens = tokenize_text(tokenizer, text);
    ASSERT_TRUE(tokens.edits.empty());
    ASSERT_EQ(text_of(tokenizer, tokens.ids, {}), text);
  }
}

TEST(LosslessTokenizer, GivesTextsWithCaseOperatorsBack) {
  const Tokenizer tokenizer = trained_on_blanks(true, true);
  ASSERT_TRUE(tokenizer.lossless());
  Rng rng(2);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = wild_text(rng);
    const TextTokens tokens = tokenize_text(tokenizer, text);
    ASSERT_EQ(text_of(tokenizer, tokens.ids, tokens.edits), text);
  }
}

TEST(LosslessTokenizer, LearnsBlanks) {
  const Tokenizer tokenizer = trained_on_blanks(true);
  EXPECT_GE(tokenizer.find("\n"), 0);
  EXPECT_LT(tokenizer.encode("the first wind\n\tgoes").size(), 10U);
}

TEST(LosslessTokenizer, IsTheLibrarysOnOrdinaryText) {
  const Tokenizer tokenizer = trained_on_blanks(true);
  std::vector<int> library;
  for (const char* text : {"the first wind\n\tgoes  over", " 12 Green\r\n", "caf\xC3\xA9 \xF0\x9F\x98\x80"}) {
    tokenizer.encode_by_library(text, library);
    EXPECT_EQ(tokenizer.encode(text), library) << text;
  }
}

TEST(TextChanges, OfANormalisingTokenizerAreExact) {
  const Tokenizer tokenizer = trained_on_blanks(false);
  EXPECT_FALSE(tokenizer.lossless());
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = wild_text(rng);
    const TextTokens tokens = tokenize_text(tokenizer, text);
    ASSERT_EQ(text_of(tokenizer, tokens.ids, tokens.edits), text);
    ASSERT_EQ(tokens.edits.empty(), tokens.read == text);
  }
}

TEST(TextChanges, EditsAreBetweenAnyTwoTexts) {
  Rng rng(4);
  for (int i = 0; i < 500; ++i) {
    const std::string a = wild_text(rng), b = wild_text(rng);
    ASSERT_EQ(with_edits(a, edits_between(a, b)), b);
  }
  const std::string blanks(100000, ' ');
  EXPECT_EQ(edits_between("a b", "a" + blanks + "b").size(), 1U);
  EXPECT_EQ(edits_between("", "x"), (std::vector<TextEdit>{{0, 0, "x"}}));
  EXPECT_EQ(edits_between("x", ""), (std::vector<TextEdit>{{0, 1, ""}}));
  EXPECT_TRUE(edits_between("same", "same").empty());
}

}  // namespace
}  // namespace fairway
