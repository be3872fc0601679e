#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "data/compress.h"
#include "data/documents.h"
#include "data/inspect.h"
#include "data/manifest.h"
#include "data/scratch_folder.h"
#include "data/tools.h"
#include "data/validation.h"
#include "tokenizer/byte_tables.h"
#include "tokenizer/shared_data.h"
#include "tokenizer/tokenizer.h"

namespace fairway::data {
namespace {

constexpr const char* kWords[] = {"the",   "Fairway", "course", "wind", "green",  "NASA",
                                  "walks", "slowly",  "over",   "hill", "iPhone", "sea"};

std::string make_jsonl(uint64_t seed, int documents) {
  Rng rng(seed);
  std::string out;
  for (int d = 0; d < documents; ++d) {
    out += "{\"text\": \"";
    for (uint64_t w = 5 + rng.below(60); w > 0; --w) out += std::string(kWords[rng.below(12)]) + (w > 1 ? " " : ".");
    out += "\"}\n";
  }
  return out;
}

class TokenizeTest : public testing::Test {
 protected:
  void take_case_tokenizer() {
    TrainTokenizerOptions training;
    training.inputs = {folder_ / "a.jsonl"};
    training.vocab = 320;
    training.out = folder_ / "case.model";
    training.case_ops = true;
    train_tokenizer(training);
    options_.tokenizer = training.out;
  }
  void SetUp() override {
    put_file(folder_ / "a.jsonl", make_jsonl(1, 700));
    put_file(folder_ / "b.jsonl", make_jsonl(2, 900));
    put_file(folder_ / "val.jsonl", make_jsonl(3, 50));
    TrainTokenizerOptions training;
    training.inputs = {folder_ / "a.jsonl"};
    training.vocab = 320;
    training.out = folder_ / "tok.model";
    EXPECT_EQ(train_tokenizer(training).vocab, 320);
    options_.inputs = {folder_ / "a.jsonl", folder_ / "b.jsonl"};
    options_.validation = folder_ / "val.jsonl";
    options_.tokenizer = folder_ / "tok.model";
    options_.out = folder_ / "out";
    options_.shards = 3;
  }
  std::vector<uint16_t> train_tokens() const { return ShardSet::open_train(options_.out).read_all(); }

  ScratchFolder folder_;
  TokenizeOptions options_;
};

TEST_F(TokenizeTest, WritesShardsManifestAndTokenizer) {
  const TokenizeResult result = tokenize(options_);
  const ShardSet train = ShardSet::open_train(options_.out), val = Validation::open(options_.out);
  EXPECT_EQ(result.documents, 1650U);
  EXPECT_EQ(result.shards, 4);
  ASSERT_EQ(train.size(), 3U);
  ASSERT_EQ(val.size(), 1U);
  EXPECT_EQ(result.tokens, train.total() + val.total());
  EXPECT_LE(train[0].tokens() - train[2].tokens(), 1U);
  EXPECT_EQ(result.bytes, result.text_bytes);  // nothing in this text is changed by normalisation
  const auto tokens = train.read_all();
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kBosId), 1600);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kEosId), 0);
  EXPECT_EQ(read_file(options_.out / "tokenizer.model"), read_file(options_.tokenizer));
  const Manifest manifest = *read_manifest(options_.out);
  EXPECT_EQ(manifest.shards.size(), 4U);
  EXPECT_EQ(manifest.documents, 1600U);
  EXPECT_EQ(manifest.val_documents, 50U);
  for (const auto& shard : manifest.shards) EXPECT_EQ(shard.sha256, sha256_of_file(options_.out / shard.name));
  for (const auto& entry : std::filesystem::directory_iterator(options_.out))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
}

TEST_F(TokenizeTest, ThreadsAndCompressionChangeNothing) {
  tokenize(options_);
  const auto expected = train_tokens();
  put_file(folder_ / "b.jsonl", zstd(make_jsonl(2, 900)));
  for (const int threads : {1, 3}) {
    options_.threads = threads;
    options_.out = folder_ / ("out" + std::to_string(threads));
    tokenize(options_);
    EXPECT_EQ(train_tokens(), expected);
  }
}

TEST_F(TokenizeTest, InterruptedWorkGoesOn) {
  tokenize(options_);
  const auto expected = train_tokens();
  const std::string manifest = read_file(options_.out / "manifest.json");
  options_.out = folder_ / "resumed";
  int interruptions = 0;
  uint64_t resumed = 0;
  for (int tries = 0; tries < 30; ++tries) {
    int calls = 0;
    options_.progress = [&](const TokenizeProgress&) {
      if (++calls == 2) throw WorkError("interrupted");
    };
    try {
      resumed = std::max(resumed, tokenize(options_).resumed_documents);
      break;
    } catch (const WorkError&) {
      ++interruptions;
      EXPECT_THROW(Validation::open(options_.out), InputError);
    }
  }
  EXPECT_GE(interruptions, 1);
  EXPECT_GT(resumed, 0U);
  EXPECT_EQ(train_tokens(), expected);
  EXPECT_EQ(read_file(options_.out / "manifest.json"), manifest);
}

TEST_F(TokenizeTest, KilledWorkGoesOn) {
  tokenize(options_);
  const auto expected = train_tokens();
  const std::string manifest = read_file(options_.out / "manifest.json");
  options_.out = folder_ / "killed";
  options_.checkpoint_seconds = 0;
  for (int kills = 0; kills < 2; ++kills) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int calls = 0;
      options_.progress = [&](const TokenizeProgress&) {
        if (++calls == 2) ::kill(::getpid(), SIGKILL);
      };
      tokenize(options_);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << kills;
  }
  options_.progress = nullptr;
  EXPECT_GT(tokenize(options_).resumed_documents, 0U);
  EXPECT_EQ(train_tokens(), expected);
  EXPECT_EQ(read_file(options_.out / "manifest.json"), manifest);
}

TEST_F(TokenizeTest, ChangedInputIsNotResumed) {
  options_.out = folder_ / "resumed";
  options_.progress = [](const TokenizeProgress&) { throw WorkError("interrupted"); };
  EXPECT_THROW(tokenize(options_), WorkError);
  put_file(folder_ / "a.jsonl", make_jsonl(7, 701));
  options_.progress = nullptr;
  EXPECT_EQ(tokenize(options_).resumed_documents, 0U);
}

TEST_F(TokenizeTest, FewerShardsReplaceMore) {
  tokenize(options_);
  options_.shards = 2;
  tokenize(options_);
  EXPECT_EQ(list_train(options_.out).size(), 2U);
  EXPECT_TRUE(inspect(options_.out).problems.empty());
  write_shard(options_.out / "fineweb_train_000009.bin", std::vector<uint16_t>{1, 2});
  EXPECT_THROW(tokenize(options_), InputError);  // somebody else's shard
}

TEST_F(TokenizeTest, RefusesBadArguments) {
  const TokenizeOptions good = options_;
  const auto refused = [&](auto change) {
    options_ = good;
    change(options_);
    EXPECT_THROW(tokenize(options_), InputError);
  };
  refused([](auto& o) { o.inputs.clear(), o.validation.reset(); });
  refused([](auto& o) { o.shards = -1; });
  refused([](auto& o) { o.shards = 900000; });
  refused([](auto& o) { o.shard_tokens = 0; });
  refused([&](auto& o) { o.tokenizer = folder_ / "absent"; });
  refused([&](auto& o) { o.tokenizer = folder_ / "a.jsonl"; });
  refused([&](auto& o) { o.inputs = {folder_ / "absent"}; });
  refused([&](auto& o) { o.case_ops = true; });  // the tokenizer has no operators
  refused([&](auto& o) {
    put_file(folder_ / "empty", "\n");
    o.inputs = {folder_ / "empty"};
  });
  refused([&](auto& o) {
    put_file(folder_ / "broken.jsonl", make_jsonl(4, 300) + "{\"text\": \n");
    o.inputs = {folder_ / "broken.jsonl"};
  });
}

TEST_F(TokenizeTest, CaseOperatorsCountOriginalBytes) {
  take_case_tokenizer();
  const TokenizeResult result = tokenize(options_);  // the tokenizer itself says that its text is transformed
  EXPECT_TRUE(read_manifest(options_.out)->case_ops);
  EXPECT_EQ(result.bytes, result.text_bytes);
  const auto val = Validation::open(options_.out).read_all();
  const auto bytes = Validation::read(options_.out).byte_counts;
  ASSERT_EQ(bytes.size(), val.size());
  uint64_t sum = 0;
  for (size_t i = 0; i < val.size(); ++i) {
    sum += bytes[i];
    EXPECT_TRUE(val[i] != kBosId || bytes[i] == 0);
  }
  EXPECT_EQ(sum, read_manifest(options_.out)->val_bytes);
}

// Text that normalisation changes: byte counts are of the text as it was written, and a count that is not is named.
TEST_F(TokenizeTest, InspectionComparesByteCountsWithTheText) {
  take_case_tokenizer();
  put_file(folder_ / "val.jsonl", "{\"text\": \"the  Fairway\"}\n{\"text\": \"\\ufb01 NASA \\u6f22 walks\"}\n");
  tokenize(options_);
  EXPECT_EQ(read_manifest(options_.out)->val_bytes, 12U + 18U);
  const InspectOptions compare{.checksums = false, .validation = folder_ / "val.jsonl"};
  const InspectResult fine = inspect(options_.out, compare);
  EXPECT_TRUE(fine.problems.empty()) << fine.text;
  EXPECT_EQ(fine.compared_byte_counts, fine.compared_tokens);
  EXPECT_EQ(fine.compared_tokens, Validation::open(options_.out).total());

  std::vector<uint16_t> counts = Validation::read(options_.out).byte_counts;
  counts[2] += 1;
  const auto file = options_.out / "fineweb_val_bytes_000000.bin";
  write_shard(file, counts);
  const InspectResult wrong = inspect(options_.out, compare);
  ASSERT_EQ(wrong.problems.size(), 1U) << wrong.text;
  EXPECT_NE(wrong.problems[0].find(file.string() + ": token 2 "), std::string::npos) << wrong.problems[0];
  EXPECT_NE(wrong.problems[0].find("counts " + std::to_string(counts[2]) + " bytes; expected " + std::to_string(counts[2] - 1)),
            std::string::npos)
      << wrong.problems[0];
  EXPECT_NE(wrong.problems[0].find("document 1 of"), std::string::npos) << wrong.problems[0];

  counts.pop_back();
  write_shard(file, counts);
  EXPECT_EQ(inspect(options_.out, compare).problems.size(), 1U) << "fewer counts than tokens";
  put_file(folder_ / "other.jsonl", make_jsonl(9, 3));
  const InspectResult other = inspect(options_.out, {.checksums = false, .validation = folder_ / "other.jsonl"});
  ASSERT_EQ(other.problems.size(), 2U);
  EXPECT_NE(other.problems[1].find("another text"), std::string::npos) << other.problems[1];
}

TEST_F(TokenizeTest, InspectionFindsWhatIsWrong) {
  tokenize(options_);
  const InspectResult fine = inspect(options_.out);
  EXPECT_TRUE(fine.problems.empty());
  EXPECT_EQ(fine.shards, 4);
  EXPECT_EQ(fine.sampled_tokens, fine.tokens);
  EXPECT_NE(fine.text.find("most frequent"), std::string::npos);
  EXPECT_NE(fine.text.find("lengths of"), std::string::npos);

  const auto damaged = options_.out / "fineweb_train_000001.bin";
  std::string bytes = read_file(damaged);
  const std::string good = bytes;
  bytes[2000] = static_cast<char>(bytes[2000] ^ 1);
  put_file(damaged, bytes);
  EXPECT_EQ(inspect(options_.out).problems.size(), 1U);
  EXPECT_TRUE(inspect(options_.out, {.checksums = false}).problems.empty());
  bytes[2001] = 0x7F;  // and now a token outside the vocabulary
  put_file(damaged, bytes);
  EXPECT_EQ(inspect(options_.out, {.checksums = false}).problems.size(), 1U);
  put_file(damaged, good.substr(0, 1500));
  EXPECT_EQ(inspect(options_.out).problems.size(), 2U);  // its size and its checksum
  std::filesystem::remove(damaged);
  EXPECT_EQ(inspect(options_.out).problems.size(), 1U);
  put_file(options_.out / "manifest.json", "{");
  EXPECT_EQ(inspect(options_.out).problems.size(), 1U);
  EXPECT_THROW(inspect(folder_ / "absent"), InputError);
  std::filesystem::create_directories(folder_ / "nothing");
  EXPECT_THROW(inspect(folder_ / "nothing"), InputError);
}

TEST(TokenizeReal, OwnEncoderEqualsTheLibraryOnRealText) {
  const auto text = shared_folder() / "data" / "val_mixed.jsonl.xz";
  SKIP_WITHOUT(text);
  for (const int vocab : {1024, 8192}) {
    const Tokenizer tokenizer =
        Tokenizer::load(shared_folder() / "tokenizers" / ("fineweb_" + std::to_string(vocab) + "_bpe.model"));
    ASSERT_TRUE(tokenizer.has_own_encoder());
    DocumentReader reader(text);
    std::vector<int> ids, expected;
    int documents = 0;
    for (Record record; reader.next(record); ++documents) {
      reader.decode(record);
      tokenizer.encode(record.text, ids);
      tokenizer.encode_by_library(record.text, expected);
      ASSERT_TRUE(ids == expected) << "document " << documents;
    }
    EXPECT_EQ(documents, 202);
  }
}

TEST(TokenizeReal, GivesTheOfficialTokensAndBytes) {
  const auto text = shared_folder() / "data" / "fineweb_val_prefix.jsonl.xz";
  SKIP_WITHOUT(text);
  for (const int vocab : {1024, 4096, 8192}) {
    const ScratchFolder folder;
    TokenizeOptions options;
    options.inputs = {text};
    options.tokenizer = shared_folder() / "tokenizers" / ("fineweb_" + std::to_string(vocab) + "_bpe.model");
    options.out = folder / "out";
    options.shards = 1;
    const TokenizeResult result = tokenize(options);
    EXPECT_EQ(result.documents, 902U);
    EXPECT_EQ(result.bytes, 2504867U);
    const ShardSet shards = ShardSet::open_train(options.out);
    const ByteTables tables = make_byte_tables(Tokenizer::load(options.out / "tokenizer.model"));
    EXPECT_EQ(tables.count(shards.read_all()), 2504867);
    if (vocab != 1024) continue;
    EXPECT_EQ(result.tokens, 1040298U);
    EXPECT_EQ(sha256_of_file(options.out / "fineweb_train_000000.bin"),
              "313c77df386fb830c3142372cc5009a252d6d25b57e2bf3864abee433e79af03");
    EXPECT_EQ(read_manifest(options.out)->shards.at(0).sha256, sha256_of_file(options.out / "fineweb_train_000000.bin"));
  }
}

}  // namespace
}  // namespace fairway::data
