// Every text comes back byte for byte; another artifact, another tokenizer and damaged bytes are refused with a sentence.
#include "textcode/text_code.h"

#include <gmock/gmock.h>

#include "artifact/artifact.h"
#include "base/error.h"
#include "textcode/edit_code.h"
#include "textcode/made_text.h"

namespace fairway::textcode {
namespace {

using testing::HasSubstr;

TEST(TextTokens, ComeBackWithTheirEdits) {
  for (const bool cased : {false, true})
    for (const std::string& text : hard_texts()) {
      const Tokenizer& tokenizer = small_tokenizer(cased);
      const TextTokens tokens = tokenize_text(tokenizer, text);
      ASSERT_EQ(text_as_read(tokenizer, tokens.ids), tokens.read);
      ASSERT_EQ(text_of(tokenizer, tokens.ids, tokens.edits), text);
      RangeEncoder out;
      put_edits(out, tokens.edits, tokens.read);
      const std::string code = out.finish();
      RangeDecoder in(code);
      ASSERT_EQ(get_edits(in, tokens.read, text.size() + 100), tokens.edits);
    }
}

TEST(TextTokens, TextThatTheTokenizerKeepsHasNoEdits) {
  const TextTokens tokens = tokenize_text(small_tokenizer(), "the wind goes over the sea");
  EXPECT_TRUE(tokens.edits.empty());
  EXPECT_EQ(bits_of_edits(tokens.edits, tokens.read), 0);
}

TEST(TextTokens, SmallChangesHaveSmallEdits) {
  const TextTokens tokens = tokenize_text(small_tokenizer(), "the\twind  goes\nover");
  EXPECT_EQ(tokens.read, "the wind goes over");
  EXPECT_EQ(tokens.edits, (std::vector<TextEdit>{{3, 1, "\t"}, {9, 0, " "}, {13, 1, "\n"}}));
  EXPECT_EQ(changed_bytes(tokens.edits), 3U);
}

TEST(TextTokens, LinesCostAFewBitsEach) {
  const std::string text = words(20000, 3);
  const TextTokens tokens = tokenize_text(small_tokenizer(), text);
  ASSERT_GT(tokens.edits.size(), 200U);
  EXPECT_LT(bits_of_edits(tokens.edits, tokens.read), 8.0 * static_cast<double>(tokens.edits.size()));
}

TEST(TextCode, GivesEveryTextBack) {
  for (const bool cased : {false, true})
    for (const std::string& text : hard_texts()) {
      const TextCodec codec = simple_codec(small_tokenizer(cased));
      const std::string code = compress_text(text, codec);
      ASSERT_EQ(decompress_text(code, "t", codec), text);
      ASSERT_LE(code.size(), text.size() + 36);  // the header
    }
}

TEST(TextCode, GivesLongTextsBackInLanes) {
  const std::string text = words(9000, 4);
  const int64_t tokens = static_cast<int64_t>(tokenize_text(small_tokenizer(), text).ids.size());
  EXPECT_EQ(lanes_for(tokens, 64, 4), 4);
  for (const int64_t lanes : {1, 3, 4, 16}) {
    const TextCodec codec = simple_codec(small_tokenizer(), 'a', lanes);
    const std::string code = compress_text(text, codec);
    EXPECT_EQ(parse_text_code(code, "t").method, 1);
    EXPECT_EQ(decompress_text(code, "t", codec), text) << lanes;
  }
}

TEST(TextCode, LanesFollowTheLengthAlone) {
  EXPECT_EQ(lanes_for(1, 2048, 16), 1);
  EXPECT_EQ(lanes_for(2048 * 16, 2048, 16), 16);
  EXPECT_EQ(lanes_for(2048 * 16 + 1, 2048, 16), 9);  // 17 windows in two rounds
  EXPECT_EQ(lanes_for(0, 2048, 16), 1);
}

std::string refusal(const std::string& bytes, const TextCodec& codec) {
  try {
    decompress_text(bytes, "t.fwt", codec);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TextCode, RefusesWhatIsNotItsOwn) {
  const TextCodec codec = simple_codec(small_tokenizer());
  const std::string code = compress_text(words(600, 1), codec);
  EXPECT_THAT(refusal(code, simple_codec(small_tokenizer(), 'b')),
              HasSubstr("this artifact (SHA-256 bbbbbbbbbbbb…) is not the one that t.fwt was made with"));
  EXPECT_THAT(refusal(code, simple_codec(small_tokenizer(true))), HasSubstr("this tokenizer (SHA-256 "));
  EXPECT_THAT(refusal("hello", codec), HasSubstr("t.fwt: not a text compressed by fairway"));
  EXPECT_THAT(refusal("", codec), HasSubstr("not a text"));
  std::string next = code;
  next[4] = 2;
  EXPECT_THAT(refusal(next, codec), HasSubstr("version 2 of compressed texts; this program reads version 3"));
  for (size_t size = 0; size < code.size(); ++size) ASSERT_NE(refusal(code.substr(0, size), codec), "") << size;
  for (size_t at = 0; at < code.size(); ++at) {
    std::string damaged = code;
    damaged[at] = static_cast<char>(damaged[at] ^ 16);
    ASSERT_NE(refusal(damaged, codec), "") << at;
  }
}

// With its own sum mended the code itself is wrong: the text's checksum, or a check on the way, notices. Only the last bits of
// a stream may be others without a difference.
TEST(TextCode, NoticesWrongCodeBehindAGoodSum) {
  const TextCodec codec = simple_codec(small_tokenizer());
  const std::string code = compress_text(words(600, 1), codec);
  ASSERT_EQ(parse_text_code(code, "t").method, 1);
  for (size_t at = 5; at + 6 < code.size(); ++at) {
    std::string damaged = code.substr(0, code.size() - 4);
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const uint32_t sum = artifact_checksum(damaged);
    for (int i = 0; i < 4; ++i) damaged += static_cast<char>(sum >> (8 * i));
    ASSERT_NE(refusal(damaged, codec), "") << at;
  }
}

}  // namespace
}  // namespace fairway::textcode
