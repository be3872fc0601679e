// The program that people run is protected: its addresses change, its tables are read-only, its stack is guarded and not
// executable, and library functions know how much room they have.
#include <gmock/gmock.h>

#include <regex>

#include "supply/command_text.h"

namespace {

using Missing = std::vector<std::string>;

Missing missing_in(const std::string& program) {
  const std::string facts = command_text("readelf -W --file-header --segments --dynamic '" + program + "'");
  const std::string symbols = command_text("readelf -W --dyn-syms '" + program + "'");
  const auto has = [](const std::string& text, const char* form) { return std::regex_search(text, std::regex(form)); };
  Missing out;
  if (!has(facts, "Type: +DYN") || !has(facts, "\\(FLAGS_1\\).*PIE")) out.emplace_back("addresses that change");
  if (!has(facts, "GNU_RELRO")) out.emplace_back("read-only relocations");
  if (!has(facts, "\\(FLAGS_1\\).*NOW")) out.emplace_back("all names bound at the start");
  if (!has(facts, "GNU_STACK .* RW +0x")) out.emplace_back("a stack that is not executable");
  if (!has(symbols, "__stack_chk_fail")) out.emplace_back("a guarded stack");
  if (!has(symbols, "__(mem|str)[a-z]*_chk|__v?s?n?printf_chk|__read_chk")) out.emplace_back("checked library functions");
  return out;
}

TEST(Hardening, HoldsForTheProgram) { EXPECT_THAT(missing_in(FAIRWAY_PROGRAM), testing::IsEmpty()); }

TEST(Hardening, IsMissedWhereItIsNot) {
  EXPECT_THAT(missing_in(FAIRWAY_SOFT_PROGRAM),
              testing::ElementsAre("addresses that change", "read-only relocations", "all names bound at the start",
                                   "a stack that is not executable", "a guarded stack", "checked library functions"));
}

}  // namespace
