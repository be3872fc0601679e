// Our weight coder, Brotli-11 and LZMA-9 on the same quantized weights, each decoded and compared before its time counts.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifact/tensor_table.h"
#include "model/param_store.h"
#include "quant/quantized_model.h"

namespace fairway::bench {

struct PackBenchOptions {
  double k = 12.85;
  int bits = 6, repeats = 3;
  bool trellis = false;  // Gaussian weights: the nearest that a trellis allows, on a grid of half the step
  int64_t share = 8;     // Brotli and LZMA take one in so many tensors of a large model
};

// A tensor's share of its stream beside the entropy of its own levels.
struct CodedTensor {
  std::string name;
  int64_t weights = 0;
  double entropy = 0, bits = 0;
  double over() const { return entropy > 0 ? 100 * (bits / entropy - 1) : 0; }  // percent
};

struct CodedStream {
  int64_t weights = 0;
  double entropy = 0;  // bits
  size_t ours = 0, brotli = 0, lzma = 0;
  double encode = 0, decode = 0, brotli_encode = 0, brotli_decode = 0, lzma_encode = 0, lzma_decode = 0;  // seconds
  std::vector<CodedTensor> tensors;
  const CodedTensor& worst() const {
    return *std::max_element(tensors.begin(), tensors.end(),
                             [](const CodedTensor& a, const CodedTensor& b) { return a.over() < b.over(); });
  }
};

struct PackBench {
  std::vector<std::pair<StreamRole, CodedStream>> streams;
  CodedStream all;
  std::optional<CodedStream> sample;  // what general compressors had of a large model, and ours the same part
};

// Integers on SDClip grids (scoring spec §4.3b): of a model's matrices, or of so many Gaussian weights of pr1105's sizes.
std::vector<QuantizedTensor> rounded_matrices(const ParamStore& weights, const PackBenchOptions& options);
std::vector<QuantizedTensor> gaussian_matrices(int64_t weights, const PackBenchOptions& options);

// WorkError when decoded weights differ. The layers of the model tell which stream a tensor belongs to.
PackBench bench_pack(std::vector<QuantizedTensor>& tensors, int64_t layers, const PackBenchOptions& options);

}  // namespace fairway::bench
