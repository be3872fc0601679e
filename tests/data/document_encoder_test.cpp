// Bytes of tokens by both rules: those of the normalised text, and those of the text as it was written (record spec §4).
#include "data/document_encoder.h"

#include <gmock/gmock.h>

#include <numeric>

#include "base/error.h"
#include "tokenizer/train_bpe.h"

namespace fairway::data {
namespace {

using testing::ElementsAre;

class DocumentEncoderTest : public testing::Test {
 protected:
  static Tokenizer make_tokenizer() {
    int left = 200;
    const auto source = [&](std::string& out) {
      out = encode_case("The BBC and NASA said McDonald went Home, iPhone in hand");
      return left-- > 0;
    };
    BpeOptions options;
    options.vocab = 320;
    options.user_symbols.assign(kCaseOps.begin(), kCaseOps.end());
    return Tokenizer::from_bytes(train_bpe(source, options));
  }
  std::vector<uint16_t> bytes(std::string_view text, DocumentEncoder::Bytes rule) {
    std::vector<uint16_t> out;
    DocumentEncoder(tokenizer_, true, rule).encode(text, ids_, out);
    EXPECT_EQ(ids_.front(), kBosId);
    EXPECT_EQ(out.size(), ids_.size());
    EXPECT_EQ(out.front(), 0);
    return out;
  }
  std::vector<uint16_t> as_written(std::string_view text) { return bytes(text, DocumentEncoder::Bytes::as_written); }
  std::vector<uint16_t> normalised(std::string_view text) { return bytes(text, DocumentEncoder::Bytes::normalised); }
  static size_t sum(const std::vector<uint16_t>& counts) { return std::accumulate(counts.begin(), counts.end(), size_t{0}); }

  const Tokenizer tokenizer_ = make_tokenizer();
  std::vector<int> ids_;
};

TEST_F(DocumentEncoderTest, BothRulesAgreeOnTextThatNormalisationLeaves) {
  for (const std::string& text : {std::string("The BBC went Home"), std::string("NASA"), std::string("plain"),
                                  "odd " + std::string(kCapsOp) + " sign " + std::string(kEscapeOp) + " McX"}) {
    const std::vector<uint16_t> counts = as_written(text);
    EXPECT_EQ(counts, normalised(text)) << text;
    EXPECT_EQ(sum(counts), text.size()) << text;
  }
}

// Two blanks are one piece's, and a ligature of three bytes becomes the letters "fi", whose first has the bytes.
TEST_F(DocumentEncoderTest, TextThatNormalisationChangesCountsAsItWasWritten) {
  const std::string blanks = "and  in", ligature = "\xEF\xAC\x81";
  EXPECT_EQ(sum(as_written(blanks)), blanks.size());
  EXPECT_EQ(sum(normalised(blanks)), blanks.size() - 1);
  EXPECT_EQ(sum(as_written(ligature)), 3U);
  EXPECT_EQ(sum(normalised(ligature)), 2U);
}

// A character without a piece falls back to its bytes: the last of them has all, also after another such character.
TEST_F(DocumentEncoderTest, TheLastByteOfARunHasAllOfItsBytes) {
  EXPECT_THAT(as_written("\xE6\xBC\xA2\xC3\xBC"), ElementsAre(0, 0, 0, 3, 0, 2));
  EXPECT_THAT(normalised("\xE6\xBC\xA2\xC3\xBC"), ElementsAre(0, 1, 1, 1, 1, 1));
}

TEST_F(DocumentEncoderTest, IdsDoNotDependOnTheRule) {
  for (const char* text : {"The  BBC \xEF\xAC\x81 \xE6\xBC\xA2 went Home", "", " "}) {
    as_written(text);
    const std::vector<int> ids = ids_;
    normalised(text);
    EXPECT_EQ(ids_, ids) << text;
  }
}

TEST_F(DocumentEncoderTest, RefusesATokenOfMoreBytesThanACountHolds) {
  EXPECT_THROW(as_written("a" + std::string(70000, ' ') + "b"), InputError);
}

}  // namespace
}  // namespace fairway::data
