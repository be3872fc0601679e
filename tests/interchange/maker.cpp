#include "interchange/maker.h"

#include <brotli/encode.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>

#include <array>
#include <cstring>

#include "interchange/little_endian.h"
#include "interchange/torch_writer.h"
#include "interchange/zip_archive.h"

namespace fairway::interchange {

ZipParts::ZipParts(const std::string& file) {
  const ZipArchive archive(file, "sample");
  for (const auto& [name, entry] : archive.entries()) entries[name.substr(name.find('/') + 1)] = archive.read(name, "it");
}

std::string ZipParts::file(const std::string& folder) const {
  ZipWriter writer;
  for (const auto& [name, bytes] : entries) writer.add(folder + "/" + name, bytes);
  return std::move(writer).finish();
}

std::string replaced(std::string bytes, std::string_view behind, std::string_view from, std::string_view to) {
  const size_t begin = bytes.find(behind), at = begin == std::string::npos ? begin : bytes.find(from, begin);
  EXPECT_NE(at, std::string::npos) << "nothing to replace behind " << behind;
  return at == std::string::npos ? bytes : bytes.replace(at, from.size(), to);
}

std::string with_pickle(const std::string& pickle) {
  ZipWriter writer;
  writer.add("made/data.pkl", pickle);
  return std::move(writer).finish();
}

Dict::Dict(const std::string& torch_file) {
  TorchFile file(std::make_shared<const std::string>(torch_file), "sample");
  const Pickle& pickle = file.pickle();
  std::map<std::string_view, PickleRef> top;
  for (const auto& [key, value] : pickle.members(pickle.top(), "it")) top[key] = value;
  tensors = file.tensors(top.contains("w") ? top["w"] : pickle.top(), "it");
  if (!top.contains("m")) return;
  for (const auto& [key, value] : pickle.members(top["m"], "m")) {
    PickleRef kind = value;
    if (pickle[kind].kind == PickleValue::Kind::dict) kind = pickle.members(kind, "kind")[0].value;
    kinds[std::string(key)] = pickle[kind].text;
  }
}

namespace {

std::string dense_bytes(const StoredTensor& tensor) {
  std::string out;
  if (tensor.type == ElementType::i8) {
    for (const int8_t value : bytes_of(tensor)) out += static_cast<char>(value);
  } else {
    for (const float value : floats_of(tensor)) put_number(out, value);
  }
  return out;
}
void put(TorchWriter& writer, const std::string& name, const StoredTensor& tensor) {
  writer.text(name);
  writer.tensor(tensor.type == ElementType::i8 ? ElementType::i8 : ElementType::f32, tensor.shape, dense_bytes(tensor));
}
// Lineages before PR #1530 have {'type': 'int6'} for a kind.
void put_kind(TorchWriter& writer, const std::string& kind) {
  if (!kind.starts_with("int")) return writer.text(kind);
  writer.begin_dict();
  writer.text("type");
  writer.text(kind);
  writer.end_dict();
}

}  // namespace

std::string Dict::file() const {
  TorchWriter writer("made");
  writer.begin_dict();
  if (!kinds.empty()) writer.text("w"), writer.begin_dict();
  for (const auto& [name, tensor] : tensors) put(writer, name, tensor);
  if (!kinds.empty()) {
    writer.end_dict();
    writer.text("m");
    writer.begin_dict();
    for (const auto& [name, kind] : kinds) writer.text(name), put_kind(writer, kind);
    writer.end_dict();
  }
  writer.end_dict();
  return std::move(writer).finish();
}

std::vector<float> values_of(const StoredTensor& tensor) { return floats_of(tensor); }

StoredTensor tensor_of(Extents shape, const std::vector<float>& values) {
  return dense_tensor(ElementType::f32, std::move(shape),
                      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

StoredTensor cut_rows(const StoredTensor& tensor, int64_t rows) {
  StoredTensor out = tensor;
  out.shape[0] = rows;
  return out;
}

StoredTensor turned(const StoredTensor& tensor) {
  StoredTensor out = tensor;
  std::swap(out.shape[out.shape.size() - 1], out.shape[out.shape.size() - 2]);
  std::swap(out.strides[out.strides.size() - 1], out.strides[out.strides.size() - 2]);
  return tensor_of(out.shape, floats_of(out));
}

StoredTensor changed_value(const StoredTensor& tensor, size_t at, float value) {
  std::vector<float> values = floats_of(tensor);
  values.at(at) = value;
  return tensor_of(tensor.shape, values);
}

std::string brotli(std::string_view bytes) {
  std::string out(BrotliEncoderMaxCompressedSize(bytes.size()) + 64, '\0');
  size_t size = out.size();
  EXPECT_EQ(
      BrotliEncoderCompress(1, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, bytes.size(),
                            reinterpret_cast<const uint8_t*>(bytes.data()), &size, reinterpret_cast<uint8_t*>(out.data())),
      BROTLI_TRUE);
  out.resize(size);
  return out;
}

std::string xz(std::string_view bytes) {
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                                    reinterpret_cast<uint8_t*>(out.data()), &size, out.size()),
            LZMA_OK);
  out.resize(size);
  return out;
}

std::string zlib(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  out.resize(size);
  return out;
}

std::string shuffled(std::string_view bytes, char stride) {
  std::string out = std::string("BSHF") + stride;
  for (size_t first = 0; first < 2; ++first)
    for (size_t i = first; i < bytes.size(); i += 2) out += bytes[i];
  return out;
}

std::string first_group_container(const Dict& artifact, const std::function<std::string(std::string_view)>& coded) {
  struct Group {
    const char *name, *end;
    bool sorted;
  };
  constexpr std::array<Group, 7> kGroupsInOrder{{{"_tok_emb.weight.q", "tok_emb.weight.q", true},
                                                 {"attn.c_k.weight.q", ".attn.c_k.weight.q", false},
                                                 {"attn.c_q.weight.q", ".attn.c_q.weight.q", true},
                                                 {"attn.c_v.weight.q", ".attn.c_v.weight.q", false},
                                                 {"attn.proj.weight.q", ".attn.proj.weight.q", false},
                                                 {"mlp.fc.weight.q", ".mlp.fc.weight.q", true},
                                                 {"mlp.proj.weight.q", ".mlp.proj.weight.q", false}}};
  Dict rest = artifact;
  std::vector<std::string> streams;
  std::string orders, shapes = "}(";
  for (const Group& group : kGroupsInOrder) {
    std::string values;
    shapes += "X" + std::string(1, static_cast<char>(std::strlen(group.name))) + std::string(3, '\0') + group.name + "](";
    for (const auto& [name, tensor] : artifact.tensors) {  // fewer than ten layers: sorted by name is sorted by number
      if (!name.ends_with(group.end)) continue;
      const auto rows = static_cast<size_t>(tensor.shape[0]), cols = static_cast<size_t>(tensor.shape[1]);
      const std::vector<int8_t> q = bytes_of(tensor);
      std::vector<size_t> order(rows);
      for (size_t k = 0; k < rows; ++k) order[k] = group.sorted ? (k + 1) % rows : k;
      for (const size_t row : order)
        if (group.sorted) put_number(orders, static_cast<uint16_t>(row));
      for (size_t c = 0; c < cols; ++c)
        for (const size_t row : order) values += static_cast<char>(q[row * cols + c]);
      shapes += std::string("K") + static_cast<char>(rows) + "K" + static_cast<char>(cols) + "\x86";
      rest.tensors.erase(name);
    }
    shapes += 'e';
    streams.push_back(values.empty() ? "" : coded(values));
  }
  ZipParts parts(rest.file());
  std::string& pickle = parts.pickle();
  pickle = replaced(pickle, "", "}(X\1" + std::string(3, '\0') + "w", "}(X\1" + std::string(3, '\0') + "r");
  pickle.replace(pickle.size() - 2, 2, "X\1" + std::string(3, '\0') + "s" + shapes + "uu.");
  streams.push_back(brotli(parts.file()));
  streams.push_back(brotli(orders));
  std::string out = "PGRP";
  put_number(out, uint32_t{9});
  for (const std::string& stream : streams) put_number(out, static_cast<uint32_t>(stream.size()));
  for (const std::string& stream : streams) out += stream;
  return out;
}

}  // namespace fairway::interchange
