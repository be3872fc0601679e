// Pieces side by side are the text, their bits are the tokens', and a page holds them escaped.
#include "textcode/surprisal.h"

#include <gmock/gmock.h>

#include <numeric>

#include "textcode/made_text.h"

namespace fairway::textcode {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Surprisal, PiecesAreTheText) {
  for (const bool cased : {false, true})
    for (const std::string& text : hard_texts()) {
      const TextTokens tokens = tokenize_text(small_tokenizer(cased), text);
      std::vector<double> bits(tokens.ids.size());
      std::iota(bits.begin(), bits.end(), 1.0);
      std::string joined;
      double sum = 0;
      for (const TextPiece& piece : pieces_of(small_tokenizer(cased), tokens, bits)) joined += piece.text, sum += piece.bits;
      ASSERT_EQ(joined, text);
      ASSERT_EQ(sum, std::accumulate(bits.begin(), bits.end(), 0.0));
    }
}

TEST(Surprisal, TellsWhatWasChanged) {
  const TextTokens tokens = tokenize_text(small_tokenizer(), "the\nwind \xF0\x9F\x98\x80");
  const std::vector<double> bits(tokens.ids.size(), 1.0);
  const auto pieces = pieces_of(small_tokenizer(), tokens, bits);
  EXPECT_EQ(pieces[0].text, "the");
  EXPECT_FALSE(pieces[0].changed);
  EXPECT_EQ(pieces[1].text, "\nwind");
  EXPECT_EQ(pieces[1].read, " wind");
  EXPECT_TRUE(pieces[1].changed);
  EXPECT_EQ(pieces.back().text, "\xF0\x9F\x98\x80");  // one character of four tokens
  EXPECT_EQ(pieces.back().bits, 4.0);
}

TEST(Surprisal, PageIsOneSafeFile) {
  const std::vector<TextPiece> pieces{{"<script>alert(1)</script>", "x", 13.5, true}, {"\xFF&\"'", "", 0.1, false}};
  const std::string page = surprisal_page(pieces, {.title = "a<b", .bits_per_byte = 1.5, .bytes = 9, .tokens = 2});
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("\xEF\xBF\xBD&amp;&quot;&#39;"));
  EXPECT_THAT(page, HasSubstr("a&lt;b"));
  EXPECT_THAT(page, HasSubstr("class=\"s8 changed\" title=\"13.50 bits"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  for (const char* outside : {"<script", "http:", "https:", "url(", "@import", "src="})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

}  // namespace
}  // namespace fairway::textcode
