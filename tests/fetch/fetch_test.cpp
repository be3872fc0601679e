// Fetching from mirrors with every fault the loopback server knows: what arrives is whole and right, or refused with a reason.
#include "fetch/fetch.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "fetch/http.h"
#include "fetch/loopback_server.h"

namespace fairway::fetch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string random_bytes(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  return bytes;
}

std::string slurped(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

class Fetch : public testing::Test {
 protected:
  void SetUp() override {
    if (!http_in_build()) GTEST_SKIP() << "built without libcurl";
    fs::remove_all(out_);
    fs::create_directories(out_);
  }
  void TearDown() override { fs::remove_all(out_); }

  FetchOptions options(const std::vector<std::string>& ways) {
    FetchOptions asked{.set = {.name = "set"}, .out = out_};
    for (const std::string& way : ways) asked.set.mirrors.push_back(server_.address(way));
    asked.set.files = {{"a.bin", "a.bin", a_.size(), sha256_hex(a_)}};
    asked.say = [this](const std::string& text) { said_ += text + "\n"; };
    return asked;
  }
  // What a.bin is refused with.
  std::string refusal(const std::vector<std::string>& ways, double stall_seconds = 30) {
    try {
      FetchOptions asked = options(ways);
      asked.stall_seconds = stall_seconds;
      fetch(asked);
    } catch (const WorkError& error) {
      EXPECT_FALSE(fs::exists(out_ / "a.bin"));
      return error.what();
    }
    return "nothing was refused";
  }
  // As an interrupted try leaves it.
  void keep(const std::string& bytes) { std::ofstream(out_ / ".a.bin.fetching", std::ios::binary) << bytes; }
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(out_))
      if (entry.path().filename() != ".lock") names.push_back(entry.path().filename().string());
    return names;
  }

  const std::string a_ = random_bytes(5000, 1), b_ = random_bytes(300, 2);
  LoopbackServer server_{{{"a.bin", a_}, {"deep/b.bin", b_}}};
  const fs::path out_ = fs::path(testing::TempDir()) / ("fairway_fetch_" + std::to_string(::getpid()));
  std::string said_;
};

TEST_F(Fetch, BringsAllFilesAndChecksThem) {
  FetchOptions asked = options({"ok"});
  asked.set.files.push_back({"fineweb_train_000000.bin", "deep/b.bin", b_.size(), sha256_hex(b_)});
  uint64_t last = 0;
  asked.progress = [&](const FetchProgress& p) {
    last = p.bytes;
    EXPECT_EQ(p.of_bytes, 5300U);
  };
  const FetchResult first = fetch(asked);
  EXPECT_EQ(first.fetched_files, 2U);
  EXPECT_EQ(first.fetched_bytes, 5300U);
  EXPECT_EQ(last, 5300U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
  EXPECT_EQ(slurped(out_ / "fineweb_train_000000.bin"), b_);
  EXPECT_EQ(fetch(asked).fetched_bytes, 0U) << "what is there and right is left alone";
  EXPECT_THAT(left(), testing::UnorderedElementsAre("a.bin", "fineweb_train_000000.bin"));
  asked.shards = 0;
  EXPECT_EQ(fetch(asked).files, 1U);
  asked.shards = 2;
  EXPECT_THROW(fetch(asked), InputError);
}

TEST_F(Fetch, ReplacesAFileWithOtherBytes) {
  std::ofstream(out_ / "a.bin") << "something else";
  EXPECT_EQ(fetch(options({"ok"})).fetched_files, 1U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
  EXPECT_THAT(said_, HasSubstr("not the bytes that the list tells"));
}

TEST_F(Fetch, GoesOnFromWhatIsKept) {
  keep(a_.substr(0, 3210));
  const FetchResult result = fetch(options({"ok"}));
  EXPECT_EQ(result.resumed_bytes, 3210U);
  EXPECT_EQ(result.fetched_bytes, 1790U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
  EXPECT_THAT(server_.asked(), testing::ElementsAre("ok/a.bin from 3210"));
}

TEST_F(Fetch, BeginsAgainWhereTheServerKnowsNoRanges) {
  keep(a_.substr(0, 3210));
  EXPECT_EQ(fetch(options({"whole"})).fetched_bytes, 5000U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
}

TEST_F(Fetch, BeginsAgainWhereWhatIsKeptIsNotOfThisFile) {
  keep(random_bytes(3210, 9));
  fetch(options({"ok"}));
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
  EXPECT_THAT(said_, HasSubstr("what was kept of it does not fit"));
  fs::remove(out_ / "a.bin");
  keep(random_bytes(6000, 9));  // longer than the file
  fetch(options({"ok"}));
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
  fs::remove(out_ / "a.bin");
  keep(a_);  // whole, but the try ended before it was renamed
  EXPECT_EQ(fetch(options({"gone"})).fetched_bytes, 0U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
}

TEST_F(Fetch, AnswersThatAreCutAreAskedForTheRest) {
  EXPECT_EQ(fetch(options({"short"})).fetched_bytes, 5000U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
  EXPECT_THAT(server_.asked(), testing::ElementsAre("short/a.bin", "short/a.bin from 1000", "short/a.bin from 2000",
                                                    "short/a.bin from 3000", "short/a.bin from 4000"));
}

TEST_F(Fetch, SaysWhyAMirrorIsGivenUp) {
  EXPECT_THAT(refusal({"gone"}), HasSubstr("HTTP status 404"));
  EXPECT_THAT(refusal({"wrong"}), HasSubstr("its SHA-256 is"));
  EXPECT_THAT(refusal({"loop"}), HasSubstr("redirected more than 5 times"));
  EXPECT_TRUE(left().empty()) << "nothing to go on from";
  EXPECT_THAT(refusal({"long"}), HasSubstr("more than the 5000 bytes"));
  keep(a_.substr(0, 100));
  EXPECT_THAT(refusal({"elsewhere"}), HasSubstr("bytes from 101 on, though those from 100"));
  EXPECT_THAT(refusal({"stall"}, 1), HasSubstr("nothing came for 1 s"));
  EXPECT_THAT(refusal({"gone"}), HasSubstr("of its 5000 bytes are kept"));
  FetchOptions nowhere = options({});
  nowhere.set.mirrors = {"http://127.0.0.1:1/"};  // nobody listens there
  EXPECT_THROW(fetch(nowhere), WorkError);
  nowhere.set.mirrors.clear();
  EXPECT_THROW(fetch(nowhere), InputError);
}

TEST_F(Fetch, TriesTheMirrorsInTheirOrder) {
  EXPECT_EQ(fetch(options({"gone", "wrong", "loop", "hop"})).fetched_files, 1U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
  EXPECT_THAT(said_, HasSubstr("HTTP status 404"));
  EXPECT_THAT(said_, HasSubstr("SHA-256"));
  EXPECT_EQ(server_.asked().back(), "ok/a.bin");
}

// What one mirror sent before it broke off is not fetched again from the next.
TEST_F(Fetch, AnotherMirrorGoesOn) {
  FetchOptions asked = options({"stall", "ok"});
  asked.stall_seconds = 3;
  EXPECT_EQ(fetch(asked).fetched_bytes, 5000U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
}

TEST_F(Fetch, StopsWhenAsked) {
  FetchOptions asked = options({"short"});
  uint64_t bytes = 0;
  asked.progress = [&](const FetchProgress& p) { bytes = p.bytes; };
  asked.stop = [&] { return bytes >= 2000; };
  EXPECT_TRUE(fetch(asked).stopped);
  EXPECT_FALSE(fs::exists(out_ / "a.bin"));
  EXPECT_GE(fetch(options({"ok"})).resumed_bytes, 2000U);
  EXPECT_EQ(slurped(out_ / "a.bin"), a_);
}

TEST_F(Fetch, ReadsAListOfBoundedLength) {
  EXPECT_EQ(http_read(server_.address("ok") + "a.bin", 5000, 30), a_);
  EXPECT_THROW(http_read(server_.address("ok") + "a.bin", 4999, 30), InputError);
  EXPECT_THROW(http_read(server_.address("gone") + "a.bin", 5000, 30), InputError);
  EXPECT_THROW(http_read("file:///etc/passwd", 5000, 30), InputError);
}

TEST_F(Fetch, PlacesThatCannotBeWritten) {
  FetchOptions asked = options({"ok"});
  fs::create_directories(out_ / "a.bin");
  EXPECT_THROW(fetch(asked), InputError);
  std::ofstream(out_ / "file") << "x";
  asked.out = out_ / "file";
  EXPECT_THROW(fetch(asked), InputError);
  asked.out = "/proc/none";
  EXPECT_THROW(fetch(asked), InputError);
}

TEST(FetchManifest, ListsSetsFilesAndMirrors) {
  const std::string hash(64, 'a');
  const std::string text = R"({"fetch": 1, "mirrors": ["https://one.example/data"], "sets": {"sp1024": {"mirrors":
      ["http://two.example/"], "files": [{"name": "tokenizer.model", "path": "tokenizers/fineweb_1024_bpe.model", "bytes": 7,
      "sha256": ")" + hash +
                           R"("}, {"name": "fineweb_val_000000.bin", "bytes": 9, "sha256": ")" + hash + R"("}]}}})";
  const FetchManifest manifest = parse_fetch_manifest(text, "list");
  const FileSet& set = find_set(manifest, "sp1024", "list");
  EXPECT_THAT(set.mirrors, testing::ElementsAre("http://two.example/", "https://one.example/data/"));
  EXPECT_EQ(set.files[0].path, "tokenizers/fineweb_1024_bpe.model");
  EXPECT_EQ(set.files[1].path, "fineweb_val_000000.bin");
  EXPECT_THROW(find_set(manifest, "sp102", "list"), InputError);
}

TEST(FetchManifest, RefusesWhatWouldLeaveTheFolderOrCannotBeChecked) {
  const std::string hash = "\"sha256\": \"" + std::string(64, 'a') + "\"";
  const auto with = [](const std::string& file) {
    return R"({"fetch": 1, "mirrors": ["http://m/"], "sets": {"s": {"files": [{)" + file + "}]}}}";
  };
  EXPECT_EQ(parse_fetch_manifest(with(R"("name": "a", "bytes": 1, )" + hash), "list").sets.size(), 1U);
  for (const std::string& bad :
       {std::string(R"("name": "../a", "bytes": 1, )") + hash, R"("name": "", "bytes": 1, )" + hash,
        R"("name": ".lock", "bytes": 1, )" + hash, R"("name": "a/b", "bytes": 1, )" + hash,
        R"("name": "a", "path": "../a", "bytes": 1, )" + hash, R"("name": "a", "path": "/a", "bytes": 1, )" + hash,
        R"("name": "a", "path": "x/../../a", "bytes": 1, )" + hash, R"("name": "a", "path": "a b", "bytes": 1, )" + hash,
        R"("name": "a", "path": "http://x/a", "bytes": 1, )" + hash, R"("name": "a", "bytes": 0, )" + hash,
        R"("name": "a", "bytes": -1, )" + hash, R"("name": "a", "bytes": 1e30, )" + hash,
        std::string(R"("name": "a", "bytes": 1)"), std::string(R"("name": "a", "bytes": 1, "sha256": "abc")"),
        R"("name": 3, "bytes": 1, )" + hash, R"("name": "a", "bytes": 1, )" + hash + R"(}, {"name": "a", "bytes": 1, )" + hash})
    EXPECT_THROW(parse_fetch_manifest(with(bad), "list"), InputError) << bad;
  for (const char* bad :
       {"", "[]", "{}", R"({"fetch": 2, "sets": {}})", R"({"fetch": 1, "sets": {}})",
        R"({"fetch": 1, "sets": {"s": {"files": []}}})", R"({"fetch": 1, "mirrors": ["ftp://x/"], "sets": {}})"})
    EXPECT_THROW(parse_fetch_manifest(bad, "list"), InputError) << bad;
}

}  // namespace
}  // namespace fairway::fetch
