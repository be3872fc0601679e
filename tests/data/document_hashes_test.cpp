// Documents of the validation text among those of the training text: found through the file of hashes and through the shards,
// whatever the training documents were cut into, and never by chance.
#include "data/document_hashes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/rng.h"
#include "data/document_hash_writer.h"
#include "data/inspect.h"
#include "data/scratch_folder.h"
#include "data/tools.h"
#include "data/validation.h"

namespace fairway::data {
namespace {

using testing::HasSubstr;

std::string document(uint64_t number, uint64_t words) {
  Rng rng(number, 5);
  std::string text;
  for (uint64_t i = 0; i < words; ++i)
    text += (i > 0 ? " " : "") + std::string(1 + rng.below(4), static_cast<char>('a' + rng.below(26)));
  return text;
}

std::string jsonl(const std::vector<std::string>& documents) {
  std::string out;
  for (const std::string& text : documents) out += "{\"text\": \"" + text + "\"}\n";
  return out;
}

std::vector<uint64_t> hashes_of(std::span<const uint16_t> tokens) {
  std::vector<uint64_t> out;
  DocumentHasher hasher([&](const DocumentHasher::Document& of) { out.push_back(of.hash); });
  hasher.feed(tokens);
  hasher.finish();
  return out;
}

std::string error_of(const std::filesystem::path& path) {
  try {
    read_hash_file(path, [](uint64_t) {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(DocumentHasher, DependsOnTheTokensAndNotOnHowTheyCome) {
  std::vector<uint16_t> tokens;
  for (int d = 0; d < 40; ++d) {
    tokens.push_back(kBosId);
    for (int i = 0; i < 10 + d; ++i) tokens.push_back(static_cast<uint16_t>(2 + (d * 31 + i * i) % 500));
  }
  const std::vector<uint64_t> whole = hashes_of(tokens);
  EXPECT_EQ(whole.size(), 34U) << "documents of 16 to 49 tokens; the six shorter ones are not compared";
  for (const size_t part : {1, 3, 17, 64}) {
    std::vector<uint64_t> parts;
    std::vector<uint64_t> first;
    DocumentHasher hasher([&](const DocumentHasher::Document& of) { parts.push_back(of.hash), first.push_back(of.first); });
    for (size_t at = 0; at < tokens.size(); at += part)
      hasher.feed(std::span(tokens).subspan(at, std::min(part, tokens.size() - at)));
    hasher.finish();
    EXPECT_EQ(parts, whole) << part;
    for (const uint64_t place : first) EXPECT_EQ(tokens[place], kBosId);
  }
  auto distinct = whole;
  std::sort(distinct.begin(), distinct.end());
  EXPECT_EQ(std::unique(distinct.begin(), distinct.end()), distinct.end());
}

TEST(DocumentHasher, EveryTokenAndTheLengthCount) {
  std::vector<uint16_t> tokens(21, 7);
  tokens[0] = kBosId;
  const uint64_t truth = hashes_of(tokens).at(0);
  for (size_t i = 1; i < tokens.size(); ++i) {
    auto changed = tokens;
    changed[i] = 8;
    EXPECT_NE(hashes_of(changed).at(0), truth) << i;
  }
  auto longer = tokens;
  longer.push_back(0);
  EXPECT_NE(hashes_of(longer).at(0), truth);
}

class SharedDocumentsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint64_t d = 0; d < 120; ++d) train_.push_back(document(d, 20 + d));
    for (uint64_t d = 200; d < 230; ++d) validation_.push_back(document(d, 60));
    put_file(folder_ / "words.jsonl", jsonl(train_));
    TrainTokenizerOptions training;
    training.inputs = {folder_ / "words.jsonl"};
    training.vocab = 320;
    training.out = folder_ / "tok.model";
    train_tokenizer(training);
    options_.inputs = {folder_ / "train.jsonl"};
    options_.validation = folder_ / "val.jsonl";
    options_.tokenizer = folder_ / "tok.model";
    options_.out = folder_ / "out";
    options_.shards = 3;
    options_.hash_run = 16;
  }

  SharedDocuments found() {
    put_file(folder_ / "train.jsonl", jsonl(train_));
    put_file(folder_ / "val.jsonl", jsonl(validation_));
    tokenize(options_);
    return again();
  }
  SharedDocuments again() const { return find_shared(options_.out, Validation::open(options_.out).read_all()); }

  ScratchFolder folder_;
  std::vector<std::string> train_, validation_;
  TokenizeOptions options_;
};

TEST_F(SharedDocumentsTest, NoneWhereTheTextsAreApart) {
  const SharedDocuments shared = found();
  EXPECT_EQ(shared.shared, 0U);
  EXPECT_EQ(shared.validation, 30U);
  EXPECT_EQ(shared.training, 120U);
  EXPECT_EQ(shared.unknown, "");
  EXPECT_EQ(sentence_of(shared), "none of the validation text's 30 documents are among the 120 of the training text");
}

TEST_F(SharedDocumentsTest, CountsThemAndNamesTheFirst) {
  train_.insert(train_.begin() + 50, validation_[21]);
  train_.push_back(validation_[4]);
  train_.push_back(validation_[4]);  // twice in one text is one document
  const SharedDocuments shared = found();
  EXPECT_EQ(shared.shared, 2U);
  EXPECT_EQ(shared.example, 5U);
  const auto tokens = Validation::open(options_.out).read_all();
  EXPECT_EQ(tokens.at(shared.example_token), kBosId);
  EXPECT_EQ(std::count(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(shared.example_token), kBosId), 4);
  EXPECT_THAT(sentence_of(shared), HasSubstr("2 of the validation text's 30 documents"));
}

TEST_F(SharedDocumentsTest, PiecesAndShufflingHideNothing) {
  train_.push_back(validation_[7]);
  options_.pieces = 20;
  options_.shuffle = 3;
  EXPECT_EQ(found().shared, 1U);
}

TEST_F(SharedDocumentsTest, ShardsWithoutHashesAreSplitAtDocumentStarts) {
  train_.insert(train_.begin() + 60, validation_[9]);
  const SharedDocuments by_file = found();
  Manifest manifest = *read_manifest(options_.out);
  manifest.hashes.reset();
  write_manifest(options_.out, manifest);
  const SharedDocuments by_shards = again();
  EXPECT_EQ(by_shards.shared, 1U);
  EXPECT_EQ(by_shards.example, by_file.example);
  EXPECT_EQ(by_shards.training, by_file.training);
  std::filesystem::remove(options_.out / "manifest.json");  // as official shards come
  EXPECT_EQ(again().shared, 1U);
}

TEST_F(SharedDocumentsTest, PiecesWithoutHashesAreNotKnown) {
  options_.pieces = 20;
  found();
  Manifest manifest = *read_manifest(options_.out);
  manifest.hashes.reset();
  write_manifest(options_.out, manifest);
  EXPECT_THAT(again().unknown, HasSubstr("cut into pieces"));
  EXPECT_THAT(sentence_of(again()), testing::StartsWith("not known"));
}

TEST_F(SharedDocumentsTest, AShardThatTheManifestDoesNotListIsReadItself) {
  found();
  std::vector<uint16_t> tokens = Validation::open(options_.out).read_all();
  write_shard(options_.out / "fineweb_train_000009.bin", tokens);
  EXPECT_EQ(again().shared, 30U);
}

TEST_F(SharedDocumentsTest, TheFileIsSortedHoweverItIsMade) {
  found();
  std::vector<uint64_t> sorted;
  const HashFileIdentity file = read_hash_file(options_.out / kHashFileName, [&](uint64_t hash) { sorted.push_back(hash); });
  auto expected = hashes_of(ShardSet::open_train(options_.out).read_all());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sorted, expected);
  EXPECT_EQ(file.count, expected.size());
  EXPECT_EQ(file.sha256, sha256_of_file(options_.out / kHashFileName));
  const Manifest manifest = *read_manifest(options_.out);
  EXPECT_EQ(manifest.hashes->sha256, file.sha256);
  for (const uint64_t run : {uint64_t{1}, uint64_t{7}, uint64_t{1} << 22}) {
    options_.hash_run = run;
    options_.out = folder_ / ("out" + std::to_string(run));
    found();
    EXPECT_EQ(read_manifest(options_.out)->hashes->sha256, file.sha256) << run;
  }
}

TEST_F(SharedDocumentsTest, InterruptedWorkHasTheSameHashes) {
  found();
  const std::string whole = read_manifest(options_.out)->hashes->sha256;
  for (uint64_t d = 1000; d < 2500; ++d) train_.push_back(document(d, 30));
  options_.out = folder_ / "long";
  found();
  const std::string expected = read_manifest(options_.out)->hashes->sha256;
  EXPECT_NE(expected, whole);
  options_.out = folder_ / "stopped";
  options_.checkpoint_seconds = 0;
  bool stopped = false;
  options_.progress = [&](const TokenizeProgress& now) {
    if (!std::exchange(stopped, now.documents > 600)) return;
    throw WorkError("interrupted");
  };
  EXPECT_THROW(tokenize(options_), WorkError);
  options_.progress = {};
  EXPECT_GT(tokenize(options_).resumed_documents, 0U);
  EXPECT_EQ(read_manifest(options_.out)->hashes->sha256, expected);
}

TEST_F(SharedDocumentsTest, ApartLeavesOutWhatTheValidationTextHas) {
  const auto shards = [&] {
    std::string all;
    for (const auto& file : list_train(options_.out)) all += read_file(file, 1 << 20);
    return all;
  };
  for (const uint64_t pieces : {0, 20}) {
    options_.pieces = pieces;
    options_.apart = false;
    found();
    const std::string expected = shards(), hashes = read_manifest(options_.out)->hashes->sha256;
    const std::vector<std::string> apart = train_;
    train_.insert(train_.begin() + 50, validation_[21]);
    train_.push_back(validation_[4]);
    train_.push_back(validation_[4]);
    options_.apart = true;
    EXPECT_EQ(found().shared, 0U);
    EXPECT_EQ(shards(), expected) << pieces;
    EXPECT_EQ(read_manifest(options_.out)->hashes->sha256, hashes);
    EXPECT_EQ(read_manifest(options_.out)->documents, 120U);
    EXPECT_EQ(tokenize(options_).left_out, 3U);
    train_ = apart;
  }
  EXPECT_EQ(found().shared, 0U);
  EXPECT_EQ(tokenize(options_).left_out, 0U);
}

TEST_F(SharedDocumentsTest, InterruptedWorkLeavesOutTheSame) {
  for (uint64_t d = 1000; d < 2500; ++d) train_.push_back(document(d, 30));
  train_.insert(train_.begin() + 20, validation_[2]);
  train_.push_back(validation_[3]);
  options_.apart = true;
  found();
  const std::string expected = read_manifest(options_.out)->hashes->sha256;
  options_.out = folder_ / "stopped";
  options_.checkpoint_seconds = 0;
  options_.progress = [&](const TokenizeProgress& now) {
    if (now.documents > 600) throw WorkError("interrupted");
  };
  EXPECT_THROW(tokenize(options_), WorkError);
  options_.progress = {};
  const TokenizeResult result = tokenize(options_);
  EXPECT_GT(result.resumed_documents, 0U);
  EXPECT_EQ(result.left_out, 2U);  // one of them before the interruption
  EXPECT_EQ(read_manifest(options_.out)->hashes->sha256, expected);
}

TEST_F(SharedDocumentsTest, ApartNeedsBothTextsAndSomethingLeft) {
  const auto refusal = [&] {
    try {
      tokenize(options_);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  options_.apart = true;
  train_ = validation_;
  put_file(folder_ / "train.jsonl", jsonl(train_));
  put_file(folder_ / "val.jsonl", jsonl(validation_));
  EXPECT_THAT(refusal(), HasSubstr("the validation text has all of its documents too"));
  options_.validation.reset();
  EXPECT_THAT(refusal(), HasSubstr("--apart keeps training and validation text apart; give both"));
}

TEST_F(SharedDocumentsTest, InspectTellsThem) {
  EXPECT_EQ(found().shared, 0U);
  EXPECT_THAT(inspect(options_.out).text, HasSubstr("shared documents: none of"));
  EXPECT_TRUE(inspect(options_.out).problems.empty());
  train_.push_back(validation_[0]);
  found();
  const InspectResult result = inspect(options_.out);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0], HasSubstr("1 of the validation text's 30 documents"));
  std::filesystem::remove(options_.out / "manifest.json");
  EXPECT_EQ(inspect(options_.out, {.checksums = false}).shared->unknown.empty(), false);
}

TEST_F(SharedDocumentsTest, BrokenFilesAreRefused) {
  found();
  const std::filesystem::path path = options_.out / kHashFileName;
  const std::string good = read_file(path);
  const std::map<std::string, std::string> broken{
      {"not a file of documents' hashes", "X" + good.substr(1)},
      {"bytes, but its header says", good.substr(0, good.size() - 8)},
      {" hashes of 8 bytes", good + "x"},
      {"expected rising order", good.substr(0, 16) + good.substr(good.size() - 8) + good.substr(24)}};
  for (const auto& [sentence, bytes] : broken) {
    put_file(path, bytes);
    EXPECT_THAT(error_of(path), HasSubstr(sentence));
    EXPECT_THROW(again(), InputError);
  }
  std::string other = good;
  other[other.size() - 8] ^= 1;  // the lowest bit of the last one: still sorted
  put_file(path, other);
  EXPECT_EQ(error_of(path), "");
  EXPECT_THROW(again(), InputError) << "the manifest has another sum";
  std::filesystem::remove(path);
  EXPECT_THROW(again(), InputError);
}

}  // namespace
}  // namespace fairway::data
