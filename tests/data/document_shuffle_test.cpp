// Documents in a random order: all of them, whole, the same bytes however the work was cut, and nothing left of a failed run.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/document_shuffle.h"
#include "data/inspect.h"
#include "data/manifest.h"
#include "data/scratch_folder.h"
#include "data/tools.h"
#include "data/validation.h"
#include "tokenizer/tokenizer.h"

namespace fairway::data {
namespace {

using Documents = std::vector<std::vector<uint16_t>>;

std::string numbered_text(const std::string& name, int documents) {
  Rng rng(9);
  std::string out;
  for (int d = 0; d < documents; ++d) {
    out += "{\"text\": \"" + name + " " + std::to_string(d);
    for (uint64_t w = rng.below(40); w > 0; --w) out += rng.below(2) == 0 ? " Hills" : " walk over";
    out += ".\"}\n";
  }
  return out;
}

Documents split(const std::vector<uint16_t>& tokens) {
  Documents documents;
  for (const uint16_t token : tokens) {
    if (token == kBosId) documents.emplace_back();
    documents.back().push_back(token);
  }
  return documents;
}

Documents sorted(Documents documents) {
  std::sort(documents.begin(), documents.end());
  return documents;
}

class DocumentShuffleTest : public testing::Test {
 protected:
  void SetUp() override {
    put_file(folder_ / "a.jsonl", numbered_text("first", 500));
    put_file(folder_ / "b.jsonl", numbered_text("second", 400));
    put_file(folder_ / "val.jsonl", numbered_text("held", 30));
    train(false);
    options_.inputs = {folder_ / "a.jsonl", folder_ / "b.jsonl"};
    options_.validation = folder_ / "val.jsonl";
    options_.tokenizer = folder_ / "tok.model";
    options_.shards = 3;
  }
  void train(bool case_ops) {
    TrainTokenizerOptions training;
    training.inputs = {folder_ / "a.jsonl"};
    training.vocab = 300;
    training.out = folder_ / "tok.model";
    training.case_ops = case_ops;
    train_tokenizer(training);
  }
  std::vector<uint16_t> written(const std::string& name, std::optional<uint64_t> seed) {
    options_.out = folder_ / name;
    options_.shuffle = seed;
    tokenize(options_);
    return ShardSet::open_train(options_.out).read_all();
  }
  void expect_only_finished_files() const {
    for (const auto& entry : std::filesystem::directory_iterator(options_.out))
      EXPECT_FALSE(entry.path().filename().string().starts_with(".tokenize")) << entry.path();
  }

  ScratchFolder folder_;
  TokenizeOptions options_;
};

TEST_F(DocumentShuffleTest, WritesTheSameDocumentsInAnotherOrder) {
  const auto plain = written("plain", std::nullopt), one = written("one", 1), two = written("two", 2);
  const Documents before = split(plain), after = split(one);
  EXPECT_EQ(before.size(), 900U);
  EXPECT_NE(before, after);
  EXPECT_NE(one, two);
  EXPECT_EQ(sorted(before), sorted(after));
  EXPECT_EQ(sorted(before), sorted(split(two)));
  // Neighbours of the text are neighbours by chance only, and both files are found in both halves.
  int neighbours = 0, first = 0;
  for (size_t i = 0; i + 1 < before.size(); ++i) {
    const auto at = std::find(after.begin(), after.end(), before[i]);
    neighbours += at + 1 != after.end() && *(at + 1) == before[i + 1] ? 1 : 0;
    first += i < 500 && at - after.begin() < 450 ? 1 : 0;
  }
  EXPECT_LT(neighbours, 20);
  EXPECT_GT(first, 200);
  EXPECT_LT(first, 300);
  EXPECT_EQ(Validation::open(folder_ / "plain").read_all(), Validation::open(folder_ / "one").read_all());
  expect_only_finished_files();
}

TEST_F(DocumentShuffleTest, ShardsAreCutAsWithoutIt) {
  const auto plain = written("plain", std::nullopt);
  const auto shuffled = written("shuffled", 4);
  ASSERT_EQ(plain.size(), shuffled.size());
  const ShardSet a = ShardSet::open_train(folder_ / "plain"), b = ShardSet::open_train(folder_ / "shuffled");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].tokens(), b[i].tokens());
}

TEST_F(DocumentShuffleTest, ThreadsAndBucketsChangeNothing) {
  options_.threads = 1;
  const auto expected = written("one", 7);
  options_.threads = 4;
  EXPECT_EQ(written("four", 7), expected);
  for (const uint64_t words : {1, 100, 5000}) {
    options_.shuffle_words = words;
    EXPECT_EQ(written("words" + std::to_string(words), 7), expected) << words;
  }
}

TEST_F(DocumentShuffleTest, BucketsHoldWhatTheyShould) {
  const auto tokens = written("plain", std::nullopt);
  TokenStream stream(folder_.path(), "test", "key", TokenStream::Beside::hashes);
  stream.append(tokens, {}, {});
  stream.advance({.documents = 900, .tokens = tokens.size()});
  std::vector<uint16_t> one(tokens.size()), many(tokens.size());
  DocumentShuffle whole(stream, folder_.path(), 5, uint64_t{1} << 25), cut(stream, folder_.path(), 5, 2000);
  EXPECT_EQ(whole.buckets(), 1U);
  EXPECT_EQ(cut.buckets(), (tokens.size() + 6 * 900 + 1999) / 2000);
  EXPECT_GT(cut.buckets(), 5U);
  EXPECT_EQ(DocumentShuffle(stream, folder_.path(), 5, 1).buckets(), 1024U);
  whole.next(one);
  for (size_t at = 0; at < many.size(); at += 777)
    cut.next(std::span(many).subspan(at, std::min<size_t>(777, many.size() - at)));
  EXPECT_EQ(one, many);
  uint16_t more = 0;
  EXPECT_THROW(whole.next({&more, 1}), WorkError);
}

TEST_F(DocumentShuffleTest, CaseOperatorsAndPlainTextToo) {
  train(true);
  put_file(folder_ / "b.jsonl", "One Document\n\n\n\nANOTHER\n\f\nthe third\n%\nthe fourth\n");
  const auto plain = written("plain", std::nullopt), shuffled = written("shuffled", 3);
  EXPECT_NE(plain, shuffled);
  EXPECT_EQ(split(plain).size(), 504U);
  EXPECT_EQ(sorted(split(plain)), sorted(split(shuffled)));
  EXPECT_EQ(Validation::read(folder_ / "plain").byte_counts, Validation::read(folder_ / "shuffled").byte_counts);
}

// Pieces of a document follow one another in it, differ by one token at most, and lose nothing but the BOS they gain.
TEST_F(DocumentShuffleTest, PiecesAreTheDocumentCut) {
  const auto whole = split(written("whole", std::nullopt));
  const Manifest before = *read_manifest(options_.out);
  options_.pieces = 9;
  const auto pieces = split(written("pieces", std::nullopt));
  ASSERT_GT(pieces.size(), whole.size());
  size_t at = 0, cut = 0;
  for (const auto& document : whole) {
    std::vector<uint16_t> joined{document.front()};
    size_t count = 0, shortest = document.size(), longest = 0;
    for (; joined.size() < document.size(); ++at, ++count) {
      ASSERT_LT(at, pieces.size());
      EXPECT_EQ(pieces[at].front(), kBosId);
      shortest = std::min(shortest, pieces[at].size());
      longest = std::max(longest, pieces[at].size());
      joined.insert(joined.end(), pieces[at].begin() + 1, pieces[at].end());
    }
    EXPECT_EQ(joined, document);
    EXPECT_LE(longest, 9U);
    EXPECT_LE(longest, shortest + 1);
    cut += count > 1 ? 1 : 0;
  }
  EXPECT_EQ(at, pieces.size());
  EXPECT_GT(cut, 10U);
  const Manifest after = *read_manifest(options_.out);
  EXPECT_EQ(after.pieces, 9U);
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.documents, before.documents);
  EXPECT_NE(inspect(options_.out).text.find("pieces of at most 9 tokens"), std::string::npos);
  EXPECT_EQ(Validation::open(folder_ / "whole").read_all(), Validation::open(folder_ / "pieces").read_all());
  const auto shuffled = split(written("shuffled", 3));  // pieces go each their own way
  EXPECT_NE(shuffled, pieces);
  EXPECT_EQ(sorted(shuffled), sorted(pieces));
  options_.pieces = 1;
  EXPECT_THROW(tokenize(options_), InputError);
}

TEST_F(DocumentShuffleTest, TheManifestSaysSo) {
  written("plain", std::nullopt);
  EXPECT_FALSE(read_manifest(options_.out)->shuffle.has_value());
  EXPECT_EQ(inspect(options_.out).text.find("shuffled"), std::string::npos);
  const auto shuffled = written("plain", 12345678901234);  // again, over the first
  EXPECT_EQ(read_manifest(options_.out)->shuffle, 12345678901234U);
  const InspectResult seen = inspect(options_.out);
  EXPECT_EQ(seen.shuffle, 12345678901234U);
  EXPECT_NE(seen.text.find("shuffled with seed 12345678901234"), std::string::npos);
  options_.inputs.clear();  // validation text alone leaves the training documents as they are
  options_.shuffle.reset();
  tokenize(options_);
  EXPECT_EQ(read_manifest(options_.out)->shuffle, 12345678901234U);
  EXPECT_EQ(ShardSet::open_train(options_.out).read_all(), shuffled);
  options_.shuffle = 1;
  EXPECT_THROW(tokenize(options_), InputError);  // nothing to shuffle
}

// The scratch file is a little longer than the stream, so a limit between the two ends the work while documents are moved. The
// text is long enough for the tokenizer's file to stay below.
TEST_F(DocumentShuffleTest, NothingOfAKilledOrFailedRunStays) {
  put_file(folder_ / "a.jsonl", numbered_text("many", 6000));
  const auto expected = written("plain", 8);
  options_.out = folder_ / "killed";
  ASSERT_GT(2 * expected.size(), std::filesystem::file_size(options_.tokenizer));
  for (const bool killed : {true, false}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlim_t bytes = 2 * expected.size() + 64;
      const rlimit limit{bytes, bytes}, no_core{0, 0};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::setrlimit(RLIMIT_CORE, &no_core);
      ::signal(SIGXFSZ, killed ? SIG_DFL : SIG_IGN);
      try {
        tokenize(options_);
      } catch (const WorkError&) {
        ::_exit(7);
      }
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (killed)
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
    else
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
    EXPECT_FALSE(std::filesystem::exists(options_.out / ".tokenize_shuffle"));
    EXPECT_FALSE(std::filesystem::exists(options_.out / "manifest.json"));
    EXPECT_TRUE(list_train(options_.out).empty());
  }
  EXPECT_GT(tokenize(options_).resumed_documents, 0U);  // the tokens themselves were safe
  EXPECT_EQ(ShardSet::open_train(options_.out).read_all(), expected);
  expect_only_finished_files();
}

}  // namespace
}  // namespace fairway::data
