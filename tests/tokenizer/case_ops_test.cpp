#include "tokenizer/case_tokens.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/rng.h"
#include "tokenizer/train_bpe.h"

namespace fairway {
namespace {

const std::string kT(kTitleOp), kC(kCapsOp), kU(kUpperOp), kE(kEscapeOp);

TEST(CaseOps, FollowsTheRules) {
  EXPECT_EQ(encode_case("all lower 123"), "all lower 123");
  EXPECT_EQ(encode_case("NASA"), kC + "nasa");
  EXPECT_EQ(encode_case("Hello A"), kT + "hello " + kT + "a");
  EXPECT_EQ(encode_case("iPhone McDonald"), "i" + kU + "phone " + kT + "mc" + kU + "donald");
  EXPECT_EQ(encode_case("ABc"), kT + "a" + kU + "bc");
  EXPECT_EQ(encode_case("x" + kC + "y"), "x" + kE + kC + "y");
  EXPECT_EQ(encode_case("\xC3\x89"
                        "A"),
            "\xC3\x89" + kT + "a");  // only ASCII letters are touched
  EXPECT_EQ(encode_case(""), "");
}

TEST(CaseOps, RoundTripsAnyText) {
  Rng rng(21);
  const std::vector<std::string> parts = {"a", "b", "A", "B", "Z",    " ",    "1",        "\xC3\x89",
                                          kT,  kC,  kU,  kE,  "word", "WORD", "\xEE\x80", "\n"};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (uint64_t i = rng.below(12); i > 0; --i) text += parts[rng.below(parts.size())];
    ASSERT_EQ(decode_case(encode_case(text)), text);
  }
}

TEST(CaseOps, DifferentTextsStayDifferent) {
  const std::vector<std::string> letters = {"a", "A", " ", kT, kC, kU, kE};
  std::map<std::string, std::string> seen;
  for (int n = 0; n < 7 * 7 * 7 * 7; ++n) {
    const std::string text = letters[n % 7] + letters[n / 7 % 7] + letters[n / 49 % 7] + letters[n / 343];
    const auto [place, fresh] = seen.emplace(encode_case(text), text);
    ASSERT_TRUE(fresh || place->second == text);
  }
}

TEST(CaseOps, RefusesOperatorsWithoutLetters) {
  for (const std::string& bad : {kT, kC + " ", kU + "1", kE, kE + "a", kT + kT + "a"})
    EXPECT_THROW(decode_case(bad), InputError);
}

TEST(CaseOps, TextInPiecesIsTheTextOfTheWhole) {
  const std::string text = "The BBC and NASA: McDonald " + kC + " iPhone \xEE\x80\x85 ABc", coded = encode_case(text);
  for (size_t a = 0; a <= coded.size(); ++a) {
    for (size_t b = a; b <= coded.size(); ++b) {
      CaseDecoder decoder;
      std::string told = decoder.push(coded.substr(0, a));
      told += decoder.push(coded.substr(a, b - a));
      told += decoder.push(coded.substr(b));
      ASSERT_EQ(told + decoder.finish(), text) << a << " " << b;
      ASSERT_EQ(decoder.fault(), "");
    }
  }
}

TEST(CaseOps, OperatorsWithoutLettersLeaveNothing) {
  CaseDecoder decoder;
  EXPECT_EQ(decoder.push(kT + " a" + kC + kU + "b" + kE + "c" + kC), " aBc");
  EXPECT_NE(decoder.fault(), "");
  EXPECT_EQ(decoder.push("de"), "DE");
  EXPECT_EQ(decoder.push("f g"), "F g");
  EXPECT_EQ(decoder.push("\xEE\x80"), "");
  EXPECT_EQ(decoder.finish(), "\xEE\x80");
}

TEST(CaseOps, OperatorsStandForNothingUnlessTheyAreEscaped) {
  int left = 200;
  const auto source = [&](std::string& out) {
    out = encode_case("The BBC and NASA said McDonald went Home, iPhone in hand");
    return left-- > 0;
  };
  BpeOptions options;
  options.vocab = 320;
  options.user_symbols.assign(kCaseOps.begin(), kCaseOps.end());
  const Tokenizer tokenizer = Tokenizer::from_bytes(train_bpe(source, options));
  const int title = tokenizer.find(kT), caps = tokenizer.find(kC), escape = tokenizer.find(kE), a = tokenizer.find("a");
  const std::vector<int> document{kBosId, title, a, caps, a, a, escape, caps, escape, escape, a};
  const std::vector<bool> want{false, false, true, false, true, true, false, true, false, true, true};
  EXPECT_EQ(CaseTokens(tokenizer).counted(document), want);
}

}  // namespace
}  // namespace fairway
