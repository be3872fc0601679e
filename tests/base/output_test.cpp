#include "base/output.h"

#include <gtest/gtest.h>

namespace fairway {
namespace {

TEST(Printable, ShowsWhatWouldSteerATerminal) {
  EXPECT_EQ(printable("plain\n\ttext \xC3\xA9 \xE2\x82\xAC"), "plain\n\ttext \xC3\xA9 \xE2\x82\xAC");
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\x07"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(printable("over\rwritten\x08\x7f"), "over\\x0dwritten\\x08\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xC2\xA9 \xC2"), "\xC2\xA9 \xC2");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
}

}  // namespace
}  // namespace fairway
