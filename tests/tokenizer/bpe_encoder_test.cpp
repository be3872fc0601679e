#include "tokenizer/bpe_encoder.h"

#include <gtest/gtest.h>

#include <bit>
#include <thread>

#include "base/rng.h"
#include "tokenizer/case_tokens.h"
#include "tokenizer/shared_data.h"
#include "tokenizer/train_bpe.h"

namespace fairway {
namespace {

std::string utf8(uint32_t code) {
  std::string out;
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>((0xFF00 >> (more + 1) & 0xFF) | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
  return out;
}

const std::string& trained_model() {
  static const std::string model = [] {
    Rng rng(7);
    const std::vector<std::string> words = {"the",    "cat", "sat",  "on",   "caf\xC3\xA9", "na\xC3\xAFve",
                                            "course", "12",  "fair", "ways", "green"};
    int left = 400;
    return train_bpe(
        [&](std::string& out) {
          out.clear();
          for (int i = 0; i < 30; ++i) out += words[rng.below(words.size())] + (i % 7 == 6 ? ", 19" : " ");
          return left-- > 0;
        },
        {.vocab = 360, .user_symbols = {kCaseOps.begin(), kCaseOps.end()}});
  }();
  return model;
}

// Words, marks that combine, compatibility forms, all kinds of space, operators, any characters and broken bytes.
std::string random_text(Rng& rng) {
  std::string text;
  for (uint64_t parts = rng.below(60); parts > 0; --parts) {
    switch (rng.below(12)) {
      case 0: text += utf8(static_cast<uint32_t>(rng.below(0x80))); break;
      case 1: text += utf8(static_cast<uint32_t>(0x300 + rng.below(0x70))); break;
      case 2: text += utf8(static_cast<uint32_t>(0x80 + rng.below(0x700))); break;
      case 3: text += utf8(static_cast<uint32_t>(0x2000 + rng.below(0x300))); break;
      case 4: text += utf8(static_cast<uint32_t>(0xF900 + rng.below(0x6FF))); break;
      case 5: text += utf8(static_cast<uint32_t>(0x10000 + rng.below(0x20000))); break;
      case 6: text += std::string(kCaseOps[rng.below(4)]); break;
      case 7: text += std::string(kSpaceMark); break;
      case 8: text += static_cast<char>(rng.next_u64()); break;
      case 9: text += utf8(static_cast<uint32_t>(0x3000 + rng.below(0x8000))); break;
      case 10: text.append(rng.below(4), rng.below(2) == 0 ? ' ' : '\n'); break;
      default:
        for (const char* word : {" the", "the", " cat", "course ", "e"})
          if (rng.below(2) == 0) text += word;
    }
  }
  return text;
}

void expect_equal_to_library(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int> expected;
  tokenizer.encode_by_library(text, expected);
  ASSERT_EQ(tokenizer.encode(text), expected) << testing::PrintToString(std::string(text));
}

TEST(BpeEncoder, RandomTextEncodesAsInTheLibrary) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(trained_model());
  ASSERT_TRUE(tokenizer.has_own_encoder());
  Rng rng(3);
  for (int round = 0; round < 3000; ++round) expect_equal_to_library(tokenizer, random_text(rng));
  for (const int size : {1, 2, 3, 4, 5, 1000, 20000}) {
    expect_equal_to_library(tokenizer, std::string(static_cast<size_t>(size), 'a'));  // one long word
    expect_equal_to_library(tokenizer, std::string(static_cast<size_t>(size), ' '));
  }
}

TEST(BpeEncoder, TheChallengesModelsEncodeAsInTheLibrary) {
  for (const int vocab : {1024, 4096, 8192}) {
    const auto path = shared_folder() / "tokenizers" / ("fineweb_" + std::to_string(vocab) + "_bpe.model");
    SKIP_WITHOUT(path);
    const Tokenizer tokenizer = Tokenizer::load(path);
    ASSERT_TRUE(tokenizer.has_own_encoder());
    Rng rng(static_cast<uint64_t>(vocab));
    for (int round = 0; round < 1000; ++round) expect_equal_to_library(tokenizer, random_text(rng));
    // Every character of the first planes between two letters: each rule of the normaliser that is one character long.
    for (uint32_t first = 0; first < 0x20000; first += 64) {
      std::string text;
      for (uint32_t code = first; code < first + 64; ++code)
        if (code < 0xD800 || code > 0xDFFF) text += "e" + utf8(code) + "x ";
      expect_equal_to_library(tokenizer, text);
    }
  }
}

// One more piece at the end of a model file: repeated fields of protobuf may be appended.
std::string with_piece(std::string model, const std::string& text, float score, PieceType type) {
  std::string message = {'\x0A', static_cast<char>(text.size())};
  message += text + '\x15';
  const auto bits = std::bit_cast<uint32_t>(score);
  for (int i = 0; i < 4; ++i) message += static_cast<char>(bits >> (8 * i));
  message += '\x18';
  message += static_cast<char>(type);
  model += '\x0A';
  model += static_cast<char>(message.size());
  return model + message;
}

TEST(BpeEncoder, LeavesOddModelsToTheLibrary) {
  const std::string space(kSpaceMark);
  const std::vector<std::string> odd = {
      with_piece(trained_model(), space + "the" + space + "cat", -1e6F, PieceType::normal),
      with_piece(trained_model(), space + space, -1e6F, PieceType::normal),
      with_piece(trained_model(), "courseways", 0, PieceType::normal),  // the score of the first merge
      with_piece(trained_model(), "fairfair", -1e6F, PieceType::unused),
      with_piece(trained_model(), "fairfair", -1e6F, PieceType::user_defined),
      with_piece(trained_model(), "\xE6\xB0\xB4", -1e6F, PieceType::control),
  };
  Rng rng(5);
  for (const std::string& model : odd) {
    const Tokenizer tokenizer = Tokenizer::from_bytes(model);
    EXPECT_FALSE(tokenizer.has_own_encoder()) << tokenizer.piece(tokenizer.vocab() - 1).text;
    for (int round = 0; round < 20; ++round) expect_equal_to_library(tokenizer, random_text(rng));
  }
  const Tokenizer fine = Tokenizer::from_bytes(with_piece(trained_model(), space + "fairfair", -1e6F, PieceType::normal));
  EXPECT_TRUE(fine.has_own_encoder());
}

TEST(BpeEncoder, NormaliserSettingsAreFollowed) {
  const std::string field = "\x1A\x02";  // a second normalizer_spec is merged into the first
  Rng rng(9);
  for (const char setting : {'\x18', '\x20'})
    for (const char value : {'\0', '\1'}) {
      const Tokenizer tokenizer = Tokenizer::from_bytes(trained_model() + field + setting + value);
      for (int round = 0; round < 300; ++round) expect_equal_to_library(tokenizer, random_text(rng));
    }
}

TEST(BpeEncoder, ThreadsShareIt) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(trained_model());
  Rng rng(13);
  std::vector<std::string> texts(200);
  std::vector<std::vector<int>> expected;
  for (std::string& text : texts) expected.push_back(tokenizer.encode(text = random_text(rng)));
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> team;
    for (size_t t = 0; t < wrong.size(); ++t)
      team.emplace_back([&, t] {
        for (size_t i = 0; i < texts.size(); ++i) wrong[t] += tokenizer.encode(texts[i]) != expected[i];
      });
  }
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace fairway
