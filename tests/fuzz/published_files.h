// Small files in the published formats, as seeds; and what a target does with what it could read.
#pragma once

#include <brotli/encode.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/targets.h"
#include "interchange/limits.h"
#include "interchange/torch_writer.h"
#include "interchange/weight_set.h"

namespace fairway::interchange {

inline std::string brotli(std::string_view bytes) {
  std::string out(BrotliEncoderMaxCompressedSize(bytes.size()) + 64, '\0');
  size_t size = out.size();
  BrotliEncoderCompress(1, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, bytes.size(),
                        reinterpret_cast<const uint8_t*>(bytes.data()), &size, reinterpret_cast<uint8_t*>(out.data()));
  out.resize(size);
  return out;
}

inline std::string xz(std::string_view bytes) {
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  size_t size = 0;
  if (lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, nullptr, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                              reinterpret_cast<uint8_t*>(out.data()), &size, out.size()) != LZMA_OK)
    std::abort();
  out.resize(size);
  return out;
}

inline std::string zlib(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  out.resize(size);
  return out;
}

inline std::string shuffled(std::string_view bytes) {
  std::string out = "BSHF\2";
  for (size_t first = 0; first < 2; ++first)
    for (size_t i = first; i < bytes.size(); i += 2) out += bytes[i];
  return out;
}

// Dense tensors of three types, and a view with strides into one of them.
inline std::string state_dict() {
  TorchWriter writer("seed");
  writer.begin_dict();
  writer.text("tok_emb.weight");
  writer.tensor(ElementType::bf16, {3, 4}, std::string(24, 'a'));
  writer.text("qo_bank");
  writer.tensor(ElementType::f32, {2, 2, 2}, std::string(32, 'b'));
  writer.text("blocks.0.attn.c_q.weight");
  writer.view(1, {2, 2}, {1, 2}, 4);
  writer.text("bigram.scale");
  writer.tensor(ElementType::f16, {}, "cd");
  writer.end_dict();
  return std::move(writer).finish();
}

struct SeedTensor {
  const char* name;
  ElementType type;
  Extents shape;
};
// Every kind of an artifact, each on a matrix of 4 by 8.
inline std::string artifact(const char* tensors_key, bool with_matrix) {
  using enum ElementType;
  const SeedTensor tensors[]{{"tok_emb.weight.q", i8, {4, 8}},
                             {"tok_emb.weight.scale", f16, {4}},
                             {"a.q", i8, {4, 8}},
                             {"a.scale", f16, {}},
                             {"b.q", i8, {4, 8}},
                             {"b.scale", f16, {4}},
                             {"b.lqA_a", i8, {4, 2}},
                             {"b.lqAs_a", f16, {}},
                             {"b.lqB_a", i8, {2, 8}},
                             {"b.lqBs_a", f16, {4}},
                             {"c.q", i8, {4, 8}},
                             {"c.scale", f16, {4}},
                             {"c.lqA", i8, {4, 2}},
                             {"c.lqAs", f16, {4}},
                             {"c.lqB", i8, {2, 8}},
                             {"c.lqBs", f16, {2}},
                             {"d.gq", i8, {2, 12}},
                             {"d.gs", f16, {2}},
                             {"e", f16, {3}},
                             {"f", f32, {1, 12}}};
  TorchWriter writer("archive");
  writer.begin_dict();
  writer.text(tensors_key);
  writer.begin_dict();
  for (const auto& [name, type, shape] : tensors) {
    if (!with_matrix && std::string_view(name) == "tok_emb.weight.q") continue;
    writer.text(name);
    writer.tensor(type, shape, std::string(static_cast<size_t>(count_of(shape)) * size_of(type), '\x11'));
  }
  writer.end_dict();
  writer.text("m");
  writer.begin_dict();
  for (const auto& [name, kind] : {std::pair{"tok_emb.weight", "gptq (int7)"},
                                   {"b", "gptq (int6)+lqer_asym"},
                                   {"c", "gptq (int8)+lqer"},
                                   {"d", "gate_int8_row"},
                                   {"e", "passthrough (float16)"},
                                   {"f", "passthrough_ctrl"}})
    writer.text(name), writer.text(kind);
  writer.text("a");
  writer.begin_dict();
  writer.text("type");
  writer.text("int6");
  writer.end_dict();
  writer.end_dict();
  writer.end_dict();
  return std::move(writer).finish();
}

// Stops after a million numbers: names may share a storage.
inline void use_all(const WeightSet& set) {
  int64_t left = 1'000'000;
  float sum = 0;
  for (const auto& [name, weight] : set.weights) {
    left -= count_of(weight.shape);
    if (left < 0) break;
    const std::vector<float> values = weight.values();
    if (static_cast<int64_t>(values.size()) != count_of(weight.shape)) __builtin_trap();
    for (const float value : values) sum += value;
  }
  volatile float kept = sum;
  (void)kept;
}

}  // namespace fairway::interchange
