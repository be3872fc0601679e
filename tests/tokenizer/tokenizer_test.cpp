#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "tokenizer/byte_tables.h"
#include "tokenizer/shared_data.h"
#include "tokenizer/text_identity.h"
#include "tokenizer/train_bpe.h"

namespace fairway {
namespace {

const std::string& trained_model() {
  static const std::string model = [] {
    Rng rng(7);
    const std::vector<std::string> words = {"the",  "cat",    "sat",  "on",   "a",    "mat",
                                            "golf", "course", "wind", "fair", "ways", "green"};
    int left = 400;
    return train_bpe(
        [&](std::string& out) {
          out.clear();
          for (int i = 0; i < 30; ++i) out += words[rng.below(words.size())] + (i % 7 == 6 ? ", 19" : " ");
          return left-- > 0;
        },
        {.vocab = 330, .user_symbols = {}});
  }();
  return model;
}

TEST(Tokenizer, TrainsWithTheChallengesIds) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(trained_model());
  EXPECT_EQ(tokenizer.vocab(), 330);
  EXPECT_EQ(tokenizer.piece(kPadId).text, "<pad>");
  EXPECT_EQ(tokenizer.piece(kBosId).text, "<s>");
  EXPECT_EQ(tokenizer.piece(kEosId).text, "</s>");
  EXPECT_EQ(tokenizer.piece(kUnknownId).type, PieceType::unknown);
  EXPECT_EQ(tokenizer.piece(4).type, PieceType::byte);
  EXPECT_GE(tokenizer.find("\xE2\x96\x81the"), 0);
  EXPECT_EQ(tokenizer.sha256().size(), 64U);
}

// Field 4 of the file is the library's own test of itself; pieces are field 1, each with its text as field 1.
TEST(Tokenizer, IsKnownByWhatItMeans) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(trained_model());
  const Tokenizer noted = Tokenizer::from_bytes(trained_model() + std::string("\x22\x00", 2));
  EXPECT_NE(noted.sha256(), tokenizer.sha256());
  EXPECT_EQ(noted.identity(), tokenizer.identity());
  EXPECT_EQ(noted.names(), (std::vector{tokenizer.identity(), noted.sha256()})) << "older artifacts name the file";
  EXPECT_NE(noted.sha256(), tokenizer.sha256());
  std::string other = trained_model();
  const size_t at = other.find("\xE2\x96\x81the");
  ASSERT_NE(at, std::string::npos);
  other.replace(at + 3, 3, "THE");
  EXPECT_NE(Tokenizer::from_bytes(other).identity(), tokenizer.identity());
}

TEST(Tokenizer, TellsWhichTextTokensStandFor) {
  const Tokenizer one = Tokenizer::from_bytes(trained_model());
  int left = 60;
  const Tokenizer two = Tokenizer::from_bytes(train_bpe(
      [&](std::string& out) {
        out = "the cat sat on one mat two three four five six " + std::to_string(left % 5);
        return left-- > 0;
      },
      {.vocab = 290, .user_symbols = {}}));
  const auto identity = [](const Tokenizer& tokenizer, const std::vector<std::string>& documents) {
    std::vector<uint16_t> tokens;
    for (const std::string& document : documents) {
      tokens.push_back(kBosId);
      for (const int id : tokenizer.encode(document)) tokens.push_back(static_cast<uint16_t>(id));
    }
    return text_identity(tokens, tokenizer);
  };
  const std::vector<std::string> text{"the cat sat on a mat, 19", "\xE6\xB0\xB4 zebra"};
  EXPECT_EQ(identity(one, text), identity(two, text));
  EXPECT_NE(identity(one, text), identity(one, {"the cat sat on a mat, 18", text[1]}));
  EXPECT_NE(identity(one, text), identity(one, {text[0] + " " + text[1]}));
}

TEST(Tokenizer, TrainingTwiceGivesTheSameBytes) {
  int left = 50;
  const auto source = [&](std::string& out) {
    out = "one two three four five six seven eight nine ten " + std::to_string(left % 5);
    return left-- > 0;
  };
  const std::string first = train_bpe(source, {.vocab = 280, .user_symbols = {}});
  left = 50;
  EXPECT_TRUE(first == train_bpe(source, {.vocab = 280, .user_symbols = {}}));
}

TEST(Tokenizer, RoundTripsTextThroughByteFallback) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(trained_model());
  const std::string text = "the cat, \xE6\xB0\xB4 19 \xF0\x9F\x8C\x8A zebra";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_TRUE(tokenizer.encode("").empty());
  const std::vector<int> outside = {1, 330};
  EXPECT_THROW(tokenizer.decode(outside), InputError);
}

TEST(Tokenizer, LongSentencesAreCutNotDropped) {
  bool given = false;
  const auto source = [&](std::string& out) {
    out.clear();
    for (int i = 0; i < 4000; ++i) out += "wonderful ";
    return !std::exchange(given, true);
  };
  const Tokenizer tokenizer = Tokenizer::from_bytes(train_bpe(source, {.vocab = 290, .user_symbols = {}}));
  EXPECT_GE(tokenizer.find("\xE2\x96\x81wonderful"), 0);
}

TEST(Tokenizer, RefusesWhatCannotBeTrained) {
  const auto nothing = [](std::string&) { return false; };
  EXPECT_THROW(train_bpe(nothing, {}), InputError);
  EXPECT_THROW(train_bpe(nothing, {.vocab = 100, .user_symbols = {}}), InputError);
  EXPECT_THROW(train_bpe(nothing, {.vocab = 70000, .user_symbols = {}}), InputError);
  const auto broken = [](std::string&) -> bool { throw InputError("line 3 is broken"); };
  EXPECT_THROW(train_bpe(broken, {}), InputError);
}

TEST(Tokenizer, DamagedModelsAreRefused) {
  EXPECT_THROW(Tokenizer::load("/nonexistent/model"), InputError);
  EXPECT_THROW(Tokenizer::from_bytes(""), InputError);
  EXPECT_THROW(Tokenizer::from_bytes("not a model"), InputError);
  const std::string& good = trained_model();
  for (size_t cut : {size_t{1}, size_t{100}, good.size() / 2, good.size() - 1})
    EXPECT_THROW(Tokenizer::from_bytes(good.substr(0, cut)), InputError) << cut;
}

TEST(Tokenizer, RandomDamageNeverCrashes) {
  const std::string& good = trained_model();
  Rng rng(11);
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string bad = good;
    const size_t region = round % 2 == 0 ? 8000 : bad.size();  // the pieces, or mostly the character map
    for (uint64_t i = rng.below(6) + 1; i > 0; --i) bad[rng.below(region)] = static_cast<char>(rng.next_u64());
    try {
      const Tokenizer tokenizer = Tokenizer::from_bytes(bad);
      const auto ids = tokenizer.encode("the cat \xEF\xAC\x81 e\xCC\x81 \xE2\x84\xA2 sat");
      for (const int id : ids) EXPECT_LT(id, tokenizer.vocab());
    } catch (const InputError&) {
      ++refused;
    } catch (const WorkError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
}

TEST(ByteTables, CountTheBytesOfTheText) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(trained_model());
  const ByteTables tables = make_byte_tables(tokenizer, 340);
  ASSERT_EQ(tables.base.size(), 340U);
  EXPECT_EQ(tables.bound[339], 1);
  EXPECT_EQ(tables.bound[kBosId], 1);
  EXPECT_EQ(tables.base[kBosId], 0);
  for (const std::string text : {"the cat sat on a mat", "a \xE6\xB0\xB4 b", "fairways, 19"}) {
    std::vector<uint16_t> tokens = {kBosId};
    for (const int id : tokenizer.encode(text)) tokens.push_back(static_cast<uint16_t>(id));
    EXPECT_EQ(tables.count(tokens), static_cast<int64_t>(text.size())) << text;
  }
  const std::vector<uint16_t> outside = {1, 340};
  EXPECT_THROW(tables.count(outside), InputError);
}

TEST(ByteTables, TheSpaceAfterBosIsNotCounted) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(trained_model());
  const ByteTables tables = make_byte_tables(tokenizer);
  const auto the = static_cast<uint16_t>(tokenizer.find("\xE2\x96\x81the"));
  EXPECT_EQ(tables.of(kBosId, the), 3);
  EXPECT_EQ(tables.of(the, the), 4);
  EXPECT_EQ(tables.of(the, kBosId), 0);
}

TEST(Tokenizer, ReadsTheChallengesModels) {
  for (const int vocab : {1024, 4096, 8192}) {
    const auto path = shared_folder() / "tokenizers" / ("fineweb_" + std::to_string(vocab) + "_bpe.model");
    SKIP_WITHOUT(path);
    const Tokenizer tokenizer = Tokenizer::load(path);
    EXPECT_EQ(tokenizer.vocab(), vocab);
    EXPECT_NO_THROW(make_byte_tables(tokenizer));
  }
}

TEST(Utf8, AcceptsAndRefuses) {
  EXPECT_TRUE(is_valid_utf8("plain \xC3\xA9 \xE2\x96\x81 \xF0\x9F\x8C\x8A"));
  for (const char* bad : {"\xC0\x80", "\xC3", "\xE2\x96", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80",
                          "\xE0\x80\x80", "\xC3(", "\xF0\x9F\x8C("})
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
}

}  // namespace
}  // namespace fairway
