#include "base/progress_line.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace fairway {
namespace {

TEST(Fitted, CutsCharactersNotBytes) {
  EXPECT_EQ(fitted("abc", 3), "abc");
  EXPECT_EQ(fitted("abcd", 3), "ab…");
  EXPECT_EQ(fitted("äöüß", 4), "äöüß");
  EXPECT_EQ(fitted("äöüß", 3), "äö…");
  EXPECT_EQ(fitted("abc", 1), "…");
  EXPECT_EQ(fitted("abc", 0), "");
  EXPECT_EQ(fitted("", 0), "");
}

// Standard error is a terminal of some width while this lives; gives what was written there.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : kept_(dup(STDERR_FILENO)) {
    const winsize size{24, columns, 0, 0};
    int shown = -1;
    EXPECT_EQ(openpty(&screen_, &shown, nullptr, nullptr, &size), 0);
    dup2(shown, STDERR_FILENO);
    close(shown);
  }
  // A terminal may hand over what was written in pieces: all of it is there when the mark behind it is.
  std::string read_back() const {
    constexpr char kMark = '\x07';
    EXPECT_EQ(write(STDERR_FILENO, &kMark, 1), 1);
    std::string text;
    for (char byte = 0; read(screen_, &byte, 1) == 1 && byte != kMark;) text += byte;
    return text;
  }
  ~Terminal() {
    dup2(kept_, STDERR_FILENO);
    close(kept_);
    close(screen_);
  }

 private:
  int kept_, screen_ = -1;
};

TEST(ProgressLine, FitsTheTerminalAndStaysInItsLine) {
  std::string written;
  {
    Terminal terminal(40);
    ProgressLine line(false);
    line.show(std::string(96, 'x'));
    written = terminal.read_back();
  }
  EXPECT_EQ(written, "\r" + std::string(36, 'x') + "…\x1b[K");
}

TEST(ProgressLine, WhatStaysIsNotCut) {
  std::string written;
  {
    Terminal terminal(40);
    ProgressLine line(false);
    line.say(std::string(96, 'x'));
    written = terminal.read_back();
  }
  EXPECT_EQ(written, std::string(96, 'x') + "\r\n");
}

TEST(ProgressLine, LeavesNothingBehind) {
  std::string written;
  {
    Terminal terminal(40);
    { ProgressLine(false).show("half done"); }
    written = terminal.read_back();
  }
  EXPECT_EQ(written, "\rhalf done\x1b[K\r\x1b[K");
}

TEST(ProgressLine, QuietWritesNothing) {
  ProgressLine line(true);
  EXPECT_FALSE(line.due());
  ::testing::internal::CaptureStderr();
  line.show("a line");
  line.say("another");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// The first line comes at once, the next after ten seconds.
TEST(ProgressLine, ElsewhereLinesAreFew) {
  ::testing::internal::CaptureStderr();
  ProgressLine line(false);
  EXPECT_TRUE(line.due());
  line.show("begun");
  EXPECT_FALSE(line.due());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "begun\n");
}

}  // namespace
}  // namespace fairway
