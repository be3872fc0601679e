// A small quantized model, and its artifact taken apart: tests and fuzzing change a part and seal the file again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "artifact/architecture.h"
#include "artifact/artifact.h"
#include "artifact/byte_reader.h"
#include "artifact/gaussian_weights.h"
#include "artifact/stored_parts.h"
#include "base/half.h"
#include "base/rng.h"
#include "model/shape/model_shape.h"

namespace fairway {

inline ModelRecipe tiny_architecture() {
  ModelRecipe m;
  m.vocab = 40, m.dim = 16, m.layers = 2, m.heads = 2, m.kv_heads = 1, m.mlp_hidden = 24;
  m.rope.dims = 4;
  m.smear = SmearKind::constant, m.skip = SkipKind::additive;
  m.bigram.rows = 8, m.bigram.dim = 4;
  m.value_embed.dim = 4, m.value_embed.layers = {1};
  m.loop.start = 0, m.loop.end = 0, m.loop.count = 1;
  return m;
}

inline std::vector<int8_t> made_columns(int64_t cols) {
  std::vector<int8_t> classes;
  for (int64_t j = 0; j < cols; ++j) classes.push_back(static_cast<int8_t>(j * 5 % 13 - 6));
  return classes;
}

// Matrices as integers (embeddings of 8 bits, slices of 5 or 6, those of bank.down with steps by column), the last parameter as
// singles, the rest as halves.
inline QuantizedModel made_model(const ModelRecipe& architecture, uint64_t seed, double spread = 2.4) {
  QuantizedModel model;
  model.model = architecture;
  model.looped = architecture.loop.count > 0;
  model.tokenizer = std::string(64, 'a');
  model.recipe_hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  model.train_length = 256;
  Rng rng(seed);
  const std::vector<ParamInfo> table = parameter_table(architecture);
  for (const ParamInfo& info : table) {
    const bool sliced = info.row().block == BlockPart::matrices, whole_rows = info.role == ParamRole::token;
    for (int64_t slice = 0; slice < (sliced ? info.shape[0] : 1); ++slice) {
      QuantizedTensor t;
      t.bank = info.row().id, t.slice = sliced ? slice : -1;
      t.cols = info.shape.empty() ? 1 : info.shape.back();
      t.rows = sliced ? info.shape[1] : info.count() / t.cols;
      t.coding = sliced || whole_rows ? TensorCoding::integer_rows : TensorCoding::half;
      if (&info == &table.back()) t.coding = TensorCoding::single;
      t.bits = t.coding != TensorCoding::integer_rows ? 0 : whole_rows ? 8 : 5 + static_cast<int>(slice % 2);
      if (info.name == "bank.up" && slice == 1) t.correction.rank = 2;
      allocate_values(t);
      const int level = t.bits == 0 ? 0 : largest_level(t.bits);
      for (int8_t& q : t.q)
        q = static_cast<int8_t>(std::clamp(static_cast<int>(std::lround(spread * rng.normal())), -level, level));
      for (uint16_t& s : t.scale) s = to_half(static_cast<float>(0.01 + 0.002 * rng.uniform01()));
      for (uint16_t& h : t.halves) h = to_half(static_cast<float>(rng.normal()));
      for (float& v : t.singles) v = static_cast<float>(rng.normal());
      for (int8_t& a : t.correction.a) a = static_cast<int8_t>(static_cast<int>(rng.below(4)) - 2);
      for (int8_t& b : t.correction.b) b = static_cast<int8_t>(static_cast<int>(rng.below(16)) - 8);
      if (t.correction.rank > 0) t.correction.a_scale = to_half(0.125F);
      for (uint16_t& s : t.correction.b_scale) s = to_half(0.0625F);
      if (info.name == "bank.down") t.columns = made_columns(t.cols);
      model.tensors.push_back(std::move(t));
    }
  }
  return model;
}

// The same with matrices of every other layer on a trellis.
inline QuantizedModel made_on_trellis(const ModelRecipe& architecture, uint64_t seed, double spread = 2.4) {
  QuantizedModel model = made_model(architecture, seed, spread);
  for (QuantizedTensor& t : model.tensors) {
    if (t.coding != TensorCoding::integer_rows || t.slice % 2 == 0) continue;
    t.trellis = true;
    t.q = gaussian_on_trellis(t.rows, t.cols, spread, std::min(largest_level(t.bits), kTrellisLevel), seed);
  }
  return model;
}

inline std::string sealed(std::string body) {
  const uint32_t sum = artifact_checksum(body);
  body.append(reinterpret_cast<const char*>(&sum), 4);
  return body;
}

struct FileParts {
  std::string magic = "FWAY";
  char version = 4, flags = 7;
  std::string hashes = std::string(64, '\x5a'), length = std::string(1, '\x20');
  struct Part {
    std::string name;
    char codec = 0;
    std::string bytes;
    bool text = false;        // with the size that comes out
    uint64_t claim = 0;       // that size; of a data section nothing
    int64_t coded_size = -1;  // what the section says of its own length; -1: the truth
  };
  std::vector<Part> parts;

  Part& part(const std::string& name) {
    for (Part& p : parts) {
      if (p.name == name) return p;
    }
    throw std::logic_error("no part " + name);
  }
  void set_text(const std::string& name, const std::string& text) { part(name).bytes = text, part(name).claim = text.size(); }
  std::string body() const {
    std::string out = magic + version + flags + hashes + length;
    for (const Part& p : parts) {
      out += p.codec;
      if (p.text) put_varint(out, p.claim);
      put_varint(out, p.coded_size < 0 ? p.bytes.size() : static_cast<uint64_t>(p.coded_size));
      out += p.bytes;
    }
    return out;
  }
  std::string file() const { return sealed(body()); }
};

// Everything stored as it is: easy to change.
inline FileParts parts_of(QuantizedModel model) {
  FileParts out;
  const std::string architecture = architecture_text(model.model), table = encode_table(model.tensors);
  out.parts.push_back({"architecture", 0, architecture, true, architecture.size()});
  out.parts.push_back({"table", 0, table, true, table.size()});
  const auto streams = weight_streams(model.tensors, model.model.layers);
  for (size_t role = 0; role < streams.size(); ++role) {
    std::string bytes;
    for (const auto& b : streams[role]) bytes.append(reinterpret_cast<const char*>(b.q), static_cast<size_t>(b.rows * b.cols));
    if (!bytes.empty()) out.parts.push_back({std::string(name_of(static_cast<StreamRole>(role))), 0, bytes});
  }
  for (const ValuePart& part : kValueParts) {
    std::string bytes;
    for (QuantizedTensor& t : model.tensors) bytes.append(part.data(t), part.bytes(t));
    if (!bytes.empty()) out.parts.push_back({part.name, 0, bytes});
  }
  if (const std::string& carried = model.tokenizer_model; !carried.empty()) {
    out.flags |= 16;
    out.parts.push_back({"tokenizer", 0, carried, true, carried.size()});
  }
  return out;
}

}  // namespace fairway
