// What a command of the system prints.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

inline std::string command_text(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> part{};
  for (size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), got);
  const int status = pclose(pipe);
  EXPECT_EQ(status, 0) << command << "\n" << text;
  return text;
}
