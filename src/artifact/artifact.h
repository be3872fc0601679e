// The artifact file, `.fwy` version 4 (scoring spec §6.3; docs/packing.md): a quantized model as one self-describing file.
//   "FWAY" version flags [tokenizer hash] [recipe hash] training length [segment] | architecture | tensor table | weights by
//   role | row scales | halves | singles | correction factors and their scales | [tokenizer] | CRC-32 of all before it
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/code_streams.h"
#include "base/thread_pool.h"
#include "quant/quantized_model.h"

namespace fairway {

struct LedgerLine {
  std::string what;
  Codec codec = Codec::raw;
  uint64_t bytes = 0, plain_bytes = 0;
};
struct Ledger {  // every byte of the file has an owner
  std::vector<LedgerLine> lines;
  int64_t weights = 0;        // integers
  uint64_t weight_bytes = 0;  // of their streams
  double entropy_bits = 0;    // order 0, summed over tensors
  uint64_t total() const;
  double bits_per_weight() const {
    return weights == 0 ? 0 : 8.0 * static_cast<double>(weight_bytes) / static_cast<double>(weights);
  }
  double entropy_per_weight() const { return weights == 0 ? 0 : entropy_bits / static_cast<double>(weights); }
};

// The file's bytes. They are read back and compared with `model` before they are returned (WorkError when they differ).
// InputError when the model itself cannot be stored: a tensor missing, of another size, off its grid or not finite.
std::string write_artifact(const QuantizedModel& model, const PackOptions& options = {}, Ledger* ledger = nullptr);
// The same in two steps, for files of a model whose integers stay as they are.
CodedWeights code_weights(const QuantizedModel& model, const PackOptions& options = {});
std::string write_artifact(const QuantizedModel& model, const CodedWeights& weights, const PackOptions& options,
                           Ledger* ledger = nullptr);
// What a tokenizer's file takes in an artifact that carries it.
uint64_t carried_bytes(std::string_view tokenizer_model);
void save_artifact(const std::filesystem::path& path, std::string_view bytes);

// No field is trusted: InputError with a sentence of its own for each kind of fault, begun by `name`. Memory taken is at most
// what a file of this size can justify, kFreeBytes + kExpansion times its size.
inline constexpr uint64_t kFreeBytes = uint64_t{64} << 20;
inline constexpr uint64_t kExpansion = 64;
struct ReadLimits {
  uint64_t free_bytes = kFreeBytes;
  ThreadPool* pool = nullptr;  // streams are decoded at the same time; which of several faults is told may then vary
};
QuantizedModel read_artifact(std::string_view bytes, const std::string& name, const ReadLimits& limits = {});

// The same in two steps, for whoever wants the integers in another form and not all of them at once.
class ArtifactReader {
 public:
  // Reads what the file says of itself: model() has every tensor's place, sizes and coding, and no values. The bytes must
  // outlive the reader.
  ArtifactReader(std::string_view bytes, const std::string& name, const ReadLimits& limits = {});
  ~ArtifactReader();
  QuantizedModel& model() { return model_; }

  // Reads all values. take(tensor) is called for each tensor of integers as soon as q is there and checked, on any thread; its
  // scales come later, and what take() does with q is its own affair.
  using Take = std::function<void(QuantizedTensor&)>;
  void read(const Take& take);

 private:
  struct Plan;
  std::string where_;
  ThreadPool* pool_;
  QuantizedModel model_;
  std::unique_ptr<Plan> plan_;
};
inline constexpr uint64_t kMostArtifactFileBytes = uint64_t{1} << 30;  // of a file that is read
QuantizedModel load_artifact(const std::filesystem::path& path, const ReadLimits& limits = {});

bool is_artifact(const std::filesystem::path& path);  // by its first bytes
uint32_t artifact_checksum(std::string_view bytes);   // CRC-32

// Without coding: the entropy of every tensor and the plain size of the rest.
struct PackedSize {
  double weights = 0, scales = 0, rest = 0;  // bytes
  uint64_t total() const { return static_cast<uint64_t>(weights + scales + rest); }
};
// order0: entropy_of the integer tensors in order, where the caller keeps them; empty: counted here.
PackedSize estimate_size(const QuantizedModel& model, std::span<const double> order0 = {});

}  // namespace fairway
