// An artifact as programs in other languages use it: all of it in memory, its tensors by number, its model ready to compute
// once that is asked for. What include/fairway/fairway.h promises of threads and fork() is kept here.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "artifact/artifact.h"
#include "generate/packed_executor.h"
#include "library/text_writer.h"

namespace fairway {

class OpenedArtifact {
 public:
  struct Entry {
    std::string name;
    const char* role = "";
    const char* coding = "";
    std::vector<int64_t> shape;
  };

  // threads: 0: as many as the machine has. `name` begins sentences about the file.
  OpenedArtifact(std::string_view bytes, std::string name, int threads);

  const QuantizedModel& model() const { return model_; }
  const std::string& description() const { return description_; }  // JSON
  size_t tensors() const { return entries_.size(); }
  const Entry& entry(size_t index) const;  // InputError beyond the last
  const QuantizedTensor& tensor(size_t index) const { return entry(index), model_.tensors[index]; }
  size_t index_of(std::string_view name) const;               // InputError when absent
  const QuantizedTensor& integer_tensor(size_t index) const;  // InputError for other codings
  size_t vocab() const { return static_cast<size_t>(model_.model.vocab); }

  void logits(std::span<const int32_t> tokens, float* out);  // (count, V)
  void set_tokenizer(const std::filesystem::path& path);
  std::vector<int> encode(std::string_view text);
  std::vector<int32_t> write(const TextRequest& request, const TellText& tell);
  std::vector<int32_t> go_on(std::vector<int32_t> tokens, const TextRequest& request);  // without a tokenizer

  bool is_of_another_process() const;  // whose threads this one does not have

 private:
  class Turn;
  const Tokenizer& tokenizer();
  std::unique_ptr<Tokenizer> checked(Tokenizer tokenizer) const;
  void require_tokens(std::span<const int32_t> tokens) const;
  Decoder decoder(int64_t length);

  std::string name_;
  pid_t process_;
  Queue queue_;
  QuantizedModel model_;
  Recipe recipe_;
  std::vector<Entry> entries_;
  std::string description_;

  std::mutex computing_, reading_text_;
  std::atomic<std::thread::id> computes_{};
  std::unique_ptr<PackedWeights> packed_;  // with the executor, made by the first call that computes
  std::unique_ptr<PackedExecutor> executor_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace fairway
