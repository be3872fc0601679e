#include "base/json.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace fairway {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::HasSubstr;

std::string nested(int levels, const std::string& inner = "") {
  return std::string(static_cast<size_t>(levels), '[') + inner + std::string(static_cast<size_t>(levels), ']');
}

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "a.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(Json, ReadsWhatIsFlatEnough) {
  EXPECT_EQ(parse_json("{\"b\":1,\"a\":[2]}", "x")["a"][0], 2);
  EXPECT_EQ(parse_json<ordered_json>("{\"b\":1,\"a\":[2]}", "x").dump(), "{\"b\":1,\"a\":[2]}");
  EXPECT_NO_THROW(parse_json(nested(kMostJsonLevels), "x"));
  const std::string brackets = "\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"";
  EXPECT_NO_THROW(parse_json(brackets, "x")) << "brackets in strings are no levels";
  EXPECT_NO_THROW(parse_json("[" + nested(60) + "," + nested(60) + "]", "x")) << "levels that were closed do not count";
}

TEST(Json, RefusesNestingAndNamesTheByte) {
  EXPECT_THAT(refusal(nested(kMostJsonLevels + 1)), HasSubstr("a.json: its JSON nests deeper than 64 levels at byte 64"));
  EXPECT_THAT(refusal(std::string(10'000'000, '[')), HasSubstr("nests deeper"));
  EXPECT_THAT(refusal("{\"a\":\"]\\\\\"," + std::string(100, '[')), HasSubstr("nests deeper"));
  EXPECT_THROW(parse_json_or_discard(nested(100'000), "x"), InputError);
  EXPECT_THROW(require_flat_json("[[1]]", "x", 1), InputError);
}

TEST(Json, RefusesMoreValuesThanAnyRecordHas) {
  const auto wide = [](size_t values) {
    std::string text = "[1";
    while (text.size() < 2 * values) text += ",1";
    return text + "]";
  };
  EXPECT_NO_THROW(parse_json(wide(900'000), "x"));
  EXPECT_THAT(refusal(wide(1'100'000)), HasSubstr("a.json: its JSON has more than 1000000 values at byte "));
  std::string empty = "[[]";  // 60 MB of these took 4.3 GB
  for (int i = 0; i < 600'000; ++i) empty += ",[]";
  EXPECT_THAT(refusal(empty + "]"), HasSubstr("more than 1000000 values"));
  EXPECT_NO_THROW(parse_json("[\"" + std::string(3'000'000, ',') + "\"]", "x")) << "commas in strings part no values";
}

TEST(Json, NamesTheByteThatIsNoJson) {
  EXPECT_THAT(refusal("[1, x]"), HasSubstr("a.json: is not JSON at byte 5"));
  EXPECT_THAT(refusal("[1e999]"), HasSubstr("a.json: is not JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("a.json: is not JSON"));
  EXPECT_TRUE(parse_json_or_discard("{\"step\": 3, \"lo", "x").is_discarded());
}

}  // namespace
}  // namespace fairway
