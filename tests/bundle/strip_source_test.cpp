// What a compiler reads of a source stays as it is; the rest goes.
#include "bundle/strip_source.h"

#include <gtest/gtest.h>

namespace fairway::bundle {
namespace {

TEST(StripSource, CommentsIndentationAndBlankLinesGo) {
  EXPECT_EQ(strip_source("// head\n\nint  a;  // one\n\n\n  int b; /* two */ int c;\n"), "int a;int b;int c;\n");
  EXPECT_EQ(strip_source("int/**/a;"), "int a;\n");
  EXPECT_EQ(strip_source("/* a\n b\n*/int c;\n"), "int c;\n");
  EXPECT_EQ(strip_source("// a \\\nstill a comment\nint b;\n"), "int b;\n");
  EXPECT_EQ(strip_source(""), "");
}

TEST(StripSource, LiteralsKeepWhatLooksLikeAComment) {
  EXPECT_EQ(strip_source("auto a = \"//  /* \\\" //\";  // x\n"), "auto a=\"//  /* \\\" //\";\n");
  EXPECT_EQ(strip_source("char a = '\"', b = '\\'', c = '/';  // x\n"), "char a='\"',b='\\'',c='/';\n");
  EXPECT_EQ(strip_source("auto a = u8\"  \\\\\";  // x\n"), "auto a=u8\"  \\\\\";\n");
}

TEST(StripSource, RawStringsKeepTheirLines) {
  const std::string raw = "auto a=R\"~(  // no comment\n\n   \"quoted\" )\" \\\n  )~\";";
  EXPECT_EQ(strip_source(raw + "  // x\n"), raw + "\n");
  EXPECT_EQ(strip_source("auto a = u8R\"(  // )\";\n"), "auto a=u8R\"(  // )\";\n");
  EXPECT_EQ(strip_source("auto a = BAR\"  // \";  // x\n"), "auto a=BAR\"  // \";\n") << "no raw string: BAR is a macro";
}

TEST(StripSource, AQuoteBetweenDigitsBeginsNoLiteral) {
  EXPECT_EQ(strip_source("int a = 1'000'000;  // x\nint b = 0xFF'FFu;  // y\n"), "int a=1'000'000;int b=0xFF'FFu;\n");
  EXPECT_EQ(strip_source("double a = 1e-5'0, b = .5'0; char c = '1';  // x\n"), "double a=1e-5'0,b= .5'0;char c='1';\n");
  EXPECT_EQ(strip_source("int a = x1 - '0';  // x\n"), "int a=x1-'0';\n");
}

TEST(StripSource, SpacesThatSeparateTokensStay) {
  EXPECT_EQ(strip_source("x = a + b - -c & &d;"), "x=a+b- -c& &d;\n");
  EXPECT_EQ(strip_source("int y = 0xE + 1, z = 1e5 - 1;"), "int y=0xE +1,z=1e5-1;\n");
  EXPECT_EQ(strip_source("f<a, ::b> (c) { return \"d\" \"e\"; }"), "f<a,::b>(c){return \"d\" \"e\";}\n");
  EXPECT_EQ(strip_source("v[i] [j] = x < ::y;"), "v[i][j]=x< ::y;\n");
  EXPECT_EQ(strip_source("#define A (b)\n"), "#define A (b)\n") << "a macro without parameters";
}

TEST(StripSource, WhatAssertionsSayIsEmptied) {
  EXPECT_EQ(strip_source("FAIRWAY_ASSERT(f(a, \"b\"), \"no \" + c);\ng(\"d\");"),
            "FAIRWAY_ASSERT(f(a,\"b\"),\"\"+c);g(\"d\");\n");
  EXPECT_EQ(strip_source("require(f(a, \"b\"), name, \"no \" + c);\nrequire(a, \"d\");"),
            "require(f(a,\"b\"),name,\"\"+c);require(a,\"d\");\n");
  EXPECT_EQ(strip_source("check_launch(\"a\");\nf(\"b\");"), "check_launch(\"\");f(\"b\");\n");
  EXPECT_EQ(strip_source("#define FAIRWAY_ASSERT(a, b) f(a, \"c\")\n"), "#define FAIRWAY_ASSERT(a, b) f(a, \"c\")\n");
}

TEST(StripSource, HelpIsEmptied) {
  EXPECT_EQ(strip_source("f(\"a\", \"what \\\"a\\\" is\"_help);"), "f(\"a\",\"\"_help);\n");
  EXPECT_EQ(strip_source("f(\"long \"\n  \"text\"_help);"), "f(\"\"_help);\n");
  EXPECT_EQ(strip_source("f(\"a\"_helps);"), "f(\"a\"_helps);\n");
}

TEST(StripSource, PreprocessorLinesEndWhereTheyEnded) {
  EXPECT_EQ(strip_source("#define A(x) \\\n    f(x); \\\n    g(x)\n\nint b;\n"), "#define A(x) \\\nf(x); \\\ng(x)\nint b;\n");
  EXPECT_EQ(strip_source("#define A x \\\n\nint b;\n"), "#define A x \\\n\nint b;\n") << "the empty line ends the macro";
  EXPECT_EQ(strip_source("#define A \\\n  // nothing\nint b;\n"), "#define A \\\n\nint b;\n");
  EXPECT_EQ(strip_source("#error it's wrong  // x\nint b;  // y\n"), "#error it's wrong  // x\nint b;\n");
}

TEST(StripSource, StatementsShareALineAndDirectivesHaveTheirOwn) {
  EXPECT_EQ(strip_source("#if A\nint a;\n#endif\nvoid f() {\n  g();\n}\nint\nb;\n"),
            "#if A\nint a;\n#endif\nvoid f(){g();}int b;\n");
}

TEST(StripSource, WhatIsNotClosedEndsWithTheText) {
  EXPECT_EQ(strip_source("int a; /* b"), "int a;\n");
  EXPECT_EQ(strip_source("auto a = \"b"), "auto a=\"b\n");
  EXPECT_EQ(strip_source("auto a = \"b\\"), "auto a=\"b\\\n");
  EXPECT_EQ(strip_source("auto a = R\"(b"), "auto a=R\"(b\n");
}

TEST(StripCMake, OnlyWholeLinesAreComments) {
  EXPECT_EQ(strip_cmake("# head\n\n  set(a \"#b\")  # c\n"), "set(a \"#b\")  # c\n");
}

}  // namespace
}  // namespace fairway::bundle
