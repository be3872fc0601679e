#include "data/documents.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/compress.h"
#include "data/scratch_folder.h"

namespace fairway::data {
namespace {

std::vector<std::string> documents_of(const std::filesystem::path& path) {
  DocumentReader reader(path);
  std::vector<std::string> out;
  for (Record record; reader.next(record);) {
    reader.decode(record);
    out.push_back(record.text);
  }
  return out;
}

std::vector<std::string> documents_in(const ScratchFolder& folder, const std::string& bytes) {
  put_file(folder / "text", bytes);
  return documents_of(folder / "text");
}

using Texts = std::vector<std::string>;

TEST(Documents, CompressionIsToldByContent) {
  const ScratchFolder folder;
  Rng rng(1);
  std::string text;
  while (text.size() < 700000) text += "line " + std::to_string(rng.next_u64()) + "\n";
  Texts whole = documents_in(folder, text);
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole[0], text);
  EXPECT_EQ(documents_in(folder, gzip(text)), whole);
  EXPECT_EQ(documents_in(folder, xz(text)), whole);
  EXPECT_EQ(documents_in(folder, zstd(text)), whole);
  // Members that follow one another are one text.
  const std::string a = text.substr(0, 1000), b = text.substr(1000);
  EXPECT_EQ(documents_in(folder, gzip(a) + gzip(b)), whole);
  EXPECT_EQ(documents_in(folder, xz(a) + xz(b)), whole);
  EXPECT_EQ(documents_in(folder, zstd(a) + zstd(b)), whole);
}

TEST(Documents, AByteOrderMarkIsNoText) {
  const ScratchFolder folder;
  const std::string mark = "\xEF\xBB\xBF", json = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n", plain = "one\n\n\ntwo\n";
  for (const std::string& text : {json, plain}) {
    const Texts want = documents_in(folder, text);
    EXPECT_EQ(documents_in(folder, mark + text), want);
    EXPECT_EQ(documents_in(folder, gzip(mark + text)), want);
    EXPECT_EQ(documents_in(folder, gzip(mark.substr(0, 1)) + gzip(mark.substr(1) + text)), want) << "cut by a member's end";
    EXPECT_EQ(documents_in(folder, xz(mark + text)), want);
    EXPECT_EQ(documents_in(folder, zstd(mark + text)), want);
  }
  EXPECT_EQ(documents_in(folder, mark), Texts());
  EXPECT_EQ(documents_in(folder, "one" + mark), Texts{"one" + mark + "\n"}) << "elsewhere it is a character";
}

TEST(Documents, OtherEncodingsAreRefusedByTheirMark) {
  const ScratchFolder folder;
  const std::string wide[] = {std::string("\xFF\xFE{\0}\0", 6), std::string("\xFE\xFF\0{\0}", 6),
                              std::string("\xFF\xFE\0\0{\0\0\0", 8), std::string("\0\0\xFE\xFF\0\0\0{", 8)};
  for (const std::string& text : wide) {
    for (const std::string& bytes : {text, gzip(text)}) {
      try {
        documents_in(folder, bytes);
        FAIL() << "read as UTF-8";
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("byte-order mark of UTF-"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Documents, BrokenStreamsAreRefused) {
  const ScratchFolder folder;
  std::string text;
  Rng rng(2);
  while (text.size() < 100000) text += std::to_string(rng.next_u64()) + "\n";
  for (const std::string& good : {gzip(text), xz(text), zstd(text)}) {
    EXPECT_THROW(documents_in(folder, good.substr(0, good.size() / 2)), InputError);
    EXPECT_THROW(documents_in(folder, good.substr(0, good.size() - 3)), InputError);
    EXPECT_THROW(documents_in(folder, good.substr(0, 20)), InputError);
    std::string bad = good;
    for (size_t i = bad.size() / 3; i < bad.size() / 3 + 8; ++i) bad[i] = static_cast<char>(~bad[i]);
    EXPECT_THROW(documents_in(folder, bad), InputError);
  }
  EXPECT_THROW(documents_of(folder / "absent"), InputError);
  EXPECT_THROW(documents_of(folder.path()), InputError);
}

TEST(Documents, PlainTextUnderACompressedNameIsRefused) {
  const ScratchFolder folder;
  for (const char* name : {"a.gz", "a.txt.xz", "a.jsonl.zst"}) {
    for (const std::string& bytes : {std::string("plain text\n"), std::string("{\"text\": \"a\"}\n"), std::string()}) {
      put_file(folder / name, bytes);
      EXPECT_THROW(documents_of(folder / name), InputError) << name;
    }
    put_file(folder / name, zstd("plain text\n"));  // compressed at least: its content decides
    EXPECT_EQ(documents_of(folder / name).size(), 1U);
  }
}

TEST(Documents, RandomDamageNeverCrashes) {
  const ScratchFolder folder;
  const std::string text = "{\"text\": \"one\"}\n{\"text\": \"two \\u00e9\", \"id\": [1, {\"a\": null}]}\n";
  Rng rng(3);
  const Texts sources = {text, gzip(text), xz(text), zstd(text)};
  for (int round = 0; round < 400; ++round) {
    std::string bad = sources[static_cast<size_t>(round % 4)];
    for (uint64_t i = rng.below(4) + 1; i > 0; --i) bad[rng.below(bad.size())] = static_cast<char>(rng.next_u64());
    if (rng.below(5) == 0) bad.resize(rng.below(bad.size()));
    try {
      documents_in(folder, bad);
    } catch (const InputError&) {}
  }
}

TEST(Documents, JsonLinesHoldOneEach) {
  const ScratchFolder folder;
  EXPECT_EQ(documents_in(folder, "\n {\"text\": \"a\\nb\"}\r\n\n{\"id\": 3, \"text\": \"\"}\n{\"text\": \"\\u00e9\"}"),
            (Texts{"a\nb", "", "\xC3\xA9"}));
}

TEST(Documents, BrokenJsonNamesItsLine) {
  const ScratchFolder folder;
  const Texts broken = {"{\"text\": \"a}", "{\"text\": 5}",        "{\"txt\": \"a\"}",        "[1]",
                        "\"a\"",           "{\"text\": \"\xFF\"}", "{\"text\": \"\\ud800\"}", "{} {}"};
  for (const std::string& line : broken) {
    try {
      documents_in(folder, "{\"text\": \"fine\"}\n\n" + line + "\n");
      FAIL() << line;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("line 3"), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(documents_in(folder, std::string(20000, '{') + "\n"), InputError);
}

TEST(Documents, PlainTextIsCutAtSeparators) {
  const ScratchFolder folder;
  EXPECT_EQ(documents_in(folder, "one\n\nstill one\n"), (Texts{"one\n\nstill one\n"}));
  EXPECT_EQ(documents_in(folder, "one\n\n\ntwo\r\n\r\n\r\n\r\nthree"), (Texts{"one\n\n", "two\r\n\r\n", "three\n"}));
  EXPECT_EQ(documents_in(folder, "one\ftwo\f\fthree\f\n"), (Texts{"one", "two", "three"}));
  EXPECT_EQ(documents_in(folder, "a joke\n%\nanother\n%\n"), (Texts{"a joke\n", "another\n"}));
  EXPECT_TRUE(documents_in(folder, "").empty());
  EXPECT_TRUE(documents_in(folder, "\n \n\n\n\t\n").empty());
}

TEST(Documents, InvalidUtf8NamesItsLine) {
  const ScratchFolder folder;
  try {
    documents_in(folder, "fine\n\n\n\nbad \xE9t\xE9\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("line 5"), std::string::npos) << error.what();
  }
}

TEST(Documents, LongLinesAreCutWithoutLoss) {
  const ScratchFolder folder;
  for (const std::string& word : {std::string("word "), std::string("\xE6\xB0\xB4"), std::string("x")}) {
    std::string text;
    while (text.size() < 3 << 20) text += word;
    const Texts parts = documents_in(folder, text);
    EXPECT_GE(parts.size(), 3U);
    std::string joined;
    for (const std::string& part : parts) {
      EXPECT_LE(part.size(), size_t{2} << 20);
      joined += part;
    }
    EXPECT_TRUE(joined == text + "\n") << word << joined.size();
  }
}

}  // namespace
}  // namespace fairway::data
