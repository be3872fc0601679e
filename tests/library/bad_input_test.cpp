// Damaged files and wrong arguments give a status and a sentence.
#include <climits>
#include <cmath>
#include <limits>

#include "library/made_artifact.h"
#include "tokenizer/utf8.h"

namespace fairway {
namespace {

std::string last_error() { return fairway_error(); }

void expect_refused(std::string_view bytes, const std::string& what) {
  fairway_artifact* out = nullptr;
  EXPECT_EQ(fairway_open_bytes(bytes.data(), bytes.size(), 1, &out), FAIRWAY_BAD_INPUT) << what;
  EXPECT_EQ(out, nullptr) << what;
  EXPECT_TRUE(last_error().starts_with("bytes in memory: ")) << what << ": " << last_error();
}

TEST(CLibraryRefuses, FilesThatAreNone) {
  expect_refused("", "empty");
  expect_refused("FWAY", "the first bytes");
  expect_refused(std::string(1000, '\0'), "zeros");
  fairway_artifact* out = nullptr;
  for (const std::string& path :
       {testing::TempDir(), testing::TempDir() + "/not-there.fwy", std::string(), std::string("/dev/null")}) {
    EXPECT_EQ(fairway_open(path.c_str(), 1, &out), FAIRWAY_BAD_INPUT) << path;
    EXPECT_FALSE(last_error().empty()) << path;
  }
  EXPECT_EQ(out, nullptr);
}

TEST(CLibraryRefuses, InSentencesOfUtf8) {
  fairway_artifact* out = nullptr;
  EXPECT_EQ(fairway_open("/no/caf\xC3\xA9-\xFF-\xC3.fwy", 1, &out), FAIRWAY_BAD_INPUT);
  EXPECT_TRUE(last_error().starts_with("/no/caf\xC3\xA9-?-?.fwy: ")) << last_error();
  for (int more = 0; more < 4; ++more) {  // cut between characters
    std::string path(static_cast<size_t>(more), 'a');
    for (int i = 0; i < 2000; ++i) path += "\xC3\xA9";
    EXPECT_EQ(fairway_open(path.c_str(), 1, &out), FAIRWAY_BAD_INPUT);
    EXPECT_TRUE(is_valid_utf8(last_error())) << last_error();
    EXPECT_GT(last_error().size(), 2000U);
  }
}

// The kept files are small enough for every place.
TEST(CLibraryRefuses, FilesCutAnywhere) {
  const std::string bytes = read_file(FAIRWAY_SOURCE_DIR "/tests/artifact/version4columns.fwy");
  open_bytes(bytes);
  for (size_t size = 0; size < bytes.size(); size += 7) {
    expect_refused(bytes.substr(0, size), "cut to " + std::to_string(size));
    expect_refused(sealed(bytes.substr(0, size)), "cut to " + std::to_string(size) + " and sealed");
  }
}

// Sealed again, a changed byte may still make an artifact; then it computes, whatever comes out.
TEST(CLibraryRefuses, OrReadsFilesWithChangedBytes) {
  const std::string bytes = read_file(FAIRWAY_SOURCE_DIR "/tests/artifact/version4columns.fwy");
  int refused = 0, read = 0;
  for (size_t at = 0; at + 4 < bytes.size(); at += 3) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    expect_refused(changed, "changed at " + std::to_string(at));
    changed = sealed(changed.substr(0, changed.size() - 4));
    fairway_artifact* out = nullptr;
    const fairway_status status = fairway_open_bytes(changed.data(), changed.size(), 1, &out);
    const Handle artifact(out);
    ASSERT_NE(status, FAIRWAY_FAILED) << at << ": " << last_error();
    (status == FAIRWAY_OK ? read : refused) += 1;
    if (status != FAIRWAY_OK) continue;
    size_t vocab = 0;
    const std::vector<int32_t> tokens{1, 5, 2};
    ASSERT_EQ(fairway_vocab(artifact.get(), &vocab), FAIRWAY_OK);
    std::vector<float> logits(3 * vocab);
    EXPECT_EQ(fairway_logits(artifact.get(), tokens.data(), 3, logits.data(), logits.size()), FAIRWAY_OK) << last_error();
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(read, 50);
}

TEST(CLibraryRefuses, NullPointers) {
  const Handle artifact = open_bytes(made_artifact().bytes);
  fairway_artifact* const a = artifact.get();
  const int32_t token = 1;
  float value = 0;
  size_t number = 0;
  fairway_tensor tensor;
  const std::vector<fairway_status> results{
      fairway_open(nullptr, 1, nullptr),
      fairway_open_bytes(nullptr, 5, 1, nullptr),
      fairway_open_bytes(made_artifact().bytes.data(), made_artifact().bytes.size(), 1, nullptr),
      fairway_describe(nullptr, nullptr),
      fairway_describe(a, nullptr),
      fairway_tensor_count(a, nullptr),
      fairway_tensor_at(nullptr, 0, &tensor),
      fairway_tensor_at(a, 0, nullptr),
      fairway_tensor_index(a, nullptr, &number),
      fairway_floats(a, 0, nullptr, 1),
      fairway_integers(nullptr, 0, nullptr, nullptr, nullptr),
      fairway_vocab(a, nullptr),
      fairway_logits(a, nullptr, 1, &value, 300),
      fairway_logits(a, &token, 1, nullptr, 300),
      fairway_set_tokenizer(a, nullptr),
      fairway_encode(a, nullptr, 3, nullptr, 0, &number),
      fairway_encode(a, "the", 3, nullptr, 5, &number),
      fairway_generate(a, "the", 3, nullptr, nullptr, nullptr),
      fairway_continue(a, &token, 1, nullptr, nullptr, &number),
      fairway_continue(a, &token, 1, nullptr, nullptr, nullptr)};
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], FAIRWAY_BAD_INPUT) << i;
  fairway_close(nullptr);
}

TEST(CLibraryRefuses, NumbersOutOfRange) {
  const Handle artifact = open_bytes(made_artifact().bytes);
  fairway_artifact* const a = artifact.get();
  fairway_artifact* none = nullptr;
  const std::string& bytes = made_artifact().bytes;
  for (const int threads : {-1, 257, INT_MAX, INT_MIN})
    EXPECT_EQ(fairway_open_bytes(bytes.data(), bytes.size(), threads, &none), FAIRWAY_BAD_INPUT) << threads;
  EXPECT_EQ(fairway_open_bytes(bytes.data(), SIZE_MAX, 1, &none), FAIRWAY_BAD_INPUT);

  fairway_tensor tensor;
  std::vector<float> values(300 * 16);
  size_t number = 0;
  EXPECT_EQ(fairway_tensor_at(a, 10'000, &tensor), FAIRWAY_BAD_INPUT);
  EXPECT_EQ(fairway_tensor_at(a, SIZE_MAX, &tensor), FAIRWAY_BAD_INPUT);
  EXPECT_EQ(fairway_tensor_index(a, "bank.nothing", &number), FAIRWAY_BAD_INPUT);
  EXPECT_NE(last_error().find("bank.nothing"), std::string::npos) << last_error();
  EXPECT_EQ(fairway_floats(a, 0, values.data(), 3), FAIRWAY_BAD_INPUT);
  EXPECT_EQ(fairway_floats(a, SIZE_MAX, values.data(), 3), FAIRWAY_BAD_INPUT);

  for (const int32_t token : {-1, 300, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(fairway_logits(a, &token, 1, values.data(), 300), FAIRWAY_BAD_INPUT);
    EXPECT_EQ(last_error(), "bytes in memory: token 0 is " + std::to_string(token) + ", expected 0 to 299");
  }
  const int32_t first = 1;
  EXPECT_EQ(fairway_logits(a, &first, 1, values.data(), 299), FAIRWAY_BAD_INPUT);
  EXPECT_EQ(fairway_logits(a, &first, 0, values.data(), 0), FAIRWAY_BAD_INPUT);
  EXPECT_EQ(fairway_logits(a, &first, SIZE_MAX, values.data(), 300), FAIRWAY_BAD_INPUT);

  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [&](auto change) {
    fairway_sampling sampling = fairway_default_sampling();
    change(sampling);
    std::string text;
    EXPECT_EQ(fairway_generate(a, "the", 3, &sampling, append_text, &text), FAIRWAY_BAD_INPUT);
    EXPECT_NE(last_error().find("expected"), std::string::npos) << last_error();
  };
  for (const double wrong : {nan, -1.0, 101.0, static_cast<double>(INFINITY)}) {
    refused([&](fairway_sampling& s) { s.temperature = wrong; });
    refused([&](fairway_sampling& s) { s.top_p = wrong; });
  }
  for (const int64_t wrong : {int64_t{-1}, INT64_MAX, INT64_MIN}) {
    refused([&](fairway_sampling& s) { s.tokens = wrong; });
    refused([&](fairway_sampling& s) { s.context = wrong; });
    refused([&](fairway_sampling& s) { s.top_k = wrong; });
  }
}

TEST(CLibraryRefuses, ButKeepsWorkingAfterwards) {
  const Handle artifact = open_bytes(made_artifact().bytes);
  const int32_t wrong = -1, right = 1;
  std::vector<float> logits(300, 0.5F);
  EXPECT_EQ(fairway_logits(artifact.get(), &wrong, 1, logits.data(), 300), FAIRWAY_BAD_INPUT);
  EXPECT_EQ(logits, std::vector<float>(300, 0.5F));
  EXPECT_EQ(fairway_logits(artifact.get(), &right, 1, logits.data(), 300), FAIRWAY_OK);
  EXPECT_NE(logits, std::vector<float>(300, 0.5F));
}

}  // namespace
}  // namespace fairway
