// Text that comes token by token is the text of all tokens together, and never half a letter.
#include "generate/text_stream.h"

#include <gtest/gtest.h>

#include "tokenizer/shared_data.h"
#include "tokenizer/train_bpe.h"

namespace fairway {
namespace {

TEST(TextStream, GivesTheTextOfAllTokensInWholeLetters) {
  const auto model = shared_folder() / "tokenizers" / "fineweb_1024_bpe.model";
  SKIP_WITHOUT(model);
  const Tokenizer tokenizer = Tokenizer::load(model);
  const std::string text = "The cat sat. Grüße an 日本語 🙂, and 3.14 more words";
  const std::vector<int> ids = tokenizer.encode(text);
  for (size_t given = 0; given <= ids.size(); ++given) {
    const std::vector<int> before(ids.begin(), ids.begin() + static_cast<int64_t>(given));
    const std::string head = tokenizer.decode(before);
    if (head.find("\xEF\xBF\xBD") != std::string::npos) continue;  // a prompt ends with a whole letter
    TextStream stream(tokenizer, before);
    std::string told;
    for (size_t i = given; i < ids.size(); ++i) {
      const std::string piece = stream.push(ids[i]);
      EXPECT_EQ(piece.find("\xEF\xBF\xBD"), std::string::npos) << "token " << i << " after " << given;
      told += piece;
    }
    told += stream.finish();
    EXPECT_EQ(head + told, text) << "after " << given;
    EXPECT_EQ(stream.finish(), "");
  }
}

// A model of transformed text: the operators of the prompt reach into what follows, and those that are made become capitals.
TEST(TextStream, CaseOperatorsBecomeCapitals) {
  int left = 200;
  const auto source = [&](std::string& out) {
    out = encode_case("The BBC and NASA said McDonald went Home, iPhone in hand");
    return left-- > 0;
  };
  BpeOptions options{.vocab = 320};
  options.user_symbols.assign(kCaseOps.begin(), kCaseOps.end());
  const Tokenizer tokenizer = Tokenizer::from_bytes(train_bpe(source, options));
  ASSERT_TRUE(declares_case_ops(tokenizer));
  const std::string text = "NASA and McDonald went Home: iPhone, BBC, " + std::string(kCapsOp) + " THE end";
  const std::vector<int> ids = encode_text(tokenizer, text);
  for (size_t given = 0; given <= ids.size(); ++given) {
    const std::vector<int> before(ids.begin(), ids.begin() + static_cast<int64_t>(given));
    CaseDecoder head;
    std::string told = head.push(tokenizer.decode(before));
    TextStream stream(tokenizer, before);
    for (size_t i = given; i < ids.size(); ++i) told += stream.push(ids[i]);
    EXPECT_EQ(told + stream.finish(), text) << "after " << given;
  }
  TextStream stream(tokenizer, {});
  const int caps = tokenizer.find(kCapsOp);
  EXPECT_EQ(stream.push(caps) + stream.push(caps) + stream.finish(), "");  // no letter ever came
}

TEST(TextStream, TellsBytesThatNeverBecomeALetter) {
  const auto model = shared_folder() / "tokenizers" / "fineweb_1024_bpe.model";
  SKIP_WITHOUT(model);
  const Tokenizer tokenizer = Tokenizer::load(model);
  const int lead = tokenizer.find("<0xF0>");
  ASSERT_GE(lead, 0);
  TextStream stream(tokenizer, {});
  EXPECT_EQ(stream.push(lead), "");
  EXPECT_NE(stream.finish(), "");
  std::string told;
  for (int i = 0; i < 6; ++i) told += stream.push(lead);
  EXPECT_NE(told, "");  // not held back for ever
}

}  // namespace
}  // namespace fairway
