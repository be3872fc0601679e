// An artifact with a tokenizer of its own, opened through the C header.
#pragma once

#include <fairway/fairway.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "artifact/file_parts.h"
#include "base/file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train_bpe.h"

namespace fairway {

struct MadeArtifact {
  QuantizedModel model;
  std::string bytes, tokenizer;

  MadeArtifact() {
    int left = 50;
    const auto next = [&](std::string& out) {
      out = "the first wind goes over the green fairway and on to the sea";
      return left-- > 0;
    };
    tokenizer = train_bpe(next, {.vocab = 300});
    ModelRecipe architecture = tiny_architecture();
    architecture.vocab = 300;
    model = made_model(architecture, 9);
    model.tokenizer = Tokenizer::from_bytes(tokenizer).identity();
    model.tokenizer_model = tokenizer;
    bytes = write_artifact(model);
  }
};
inline const MadeArtifact& made_artifact() {
  static const MadeArtifact made;
  return made;
}

// A file of these bytes, which goes with the test.
class TestFile {
 public:
  TestFile(const std::string& name, std::string_view bytes)
      : path_(std::filesystem::path(testing::TempDir()) / ("library-" + name)) {
    write_file_atomic(path_, bytes);
  }
  ~TestFile() { std::filesystem::remove(path_); }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Closing {
  void operator()(fairway_artifact* artifact) const { fairway_close(artifact); }
};
using Handle = std::unique_ptr<fairway_artifact, Closing>;

inline Handle open_bytes(std::string_view bytes, int threads = 1) {
  fairway_artifact* out = nullptr;
  EXPECT_EQ(fairway_open_bytes(bytes.data(), bytes.size(), threads, &out), FAIRWAY_OK) << fairway_error();
  return Handle(out);
}

inline int append_text(void* context, int32_t, const char* text, size_t bytes) {
  static_cast<std::string*>(context)->append(text, bytes);
  return 0;
}

inline std::string text_of(fairway_artifact* artifact, const std::string& prompt, const fairway_sampling& sampling) {
  std::string out;
  EXPECT_EQ(fairway_generate(artifact, prompt.data(), prompt.size(), &sampling, append_text, &out), FAIRWAY_OK)
      << fairway_error();
  return out;
}

}  // namespace fairway
