#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "artifact/architecture.h"
#include "artifact/artifact.h"
#include "artifact/byte_reader.h"
#include "artifact/code_streams.h"
#include "artifact/file_layout.h"
#include "artifact/stored_parts.h"
#include "base/file.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

class Writer {
 public:
  Writer(std::string& out, Ledger& ledger) : out_(out), ledger_(ledger) {}

  // What was appended since the last line, under a name.
  void enter(std::string what, Codec codec, uint64_t plain_bytes) {
    ledger_.lines.push_back({std::move(what), codec, out_.size() - entered_, plain_bytes});
    entered_ = out_.size();
  }
  void text(const std::string& what, std::string_view text) {
    const Section section = encode_text(text);
    out_ += static_cast<char>(section.codec);
    put_varint(out_, text.size());
    body(section);
    enter(what, section.codec, text.size());
  }
  uint64_t data(const std::string& what, const Section& section, uint64_t plain_bytes) {
    out_ += static_cast<char>(section.codec);
    body(section);
    enter(what, section.codec, plain_bytes);
    return ledger_.lines.back().bytes;
  }

 private:
  void body(const Section& section) {
    put_varint(out_, section.bytes.size());
    out_ += section.bytes;
  }
  std::string& out_;
  Ledger& ledger_;
  size_t entered_ = 0;
};

std::string hash_bytes(const std::string& hex, const char* what) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) break;
    out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  }
  if (out.size() != kHashBytes || hex.size() != 2 * kHashBytes)
    throw InputError(fmt::format("{} hash \"{}\": expected 64 hexadecimal digits", what, hex.substr(0, 80)));
  return out;
}

std::string header_bytes(const QuantizedModel& model) {
  std::string out(kMagic);
  const int flags = (model.looped ? kLoopedFlag : 0) | (model.tokenizer.empty() ? 0 : kTokenizerFlag) |
                    (model.recipe_hash.empty() ? 0 : kRecipeFlag) | (model.segment > 0 ? kSegmentFlag : 0) |
                    (model.tokenizer_model.empty() ? 0 : kOwnTokenizerFlag);
  out += static_cast<char>(kVersion);
  out += static_cast<char>(flags);
  if (!model.tokenizer.empty()) out += hash_bytes(model.tokenizer, "tokenizer");
  if (!model.recipe_hash.empty()) out += hash_bytes(model.recipe_hash, "recipe");
  put_varint(out, static_cast<uint64_t>(model.train_length));
  if (model.segment > 0) put_varint(out, static_cast<uint64_t>(model.segment));
  return out;
}

// The same checks as on reading, before anything is coded; then the sizes of the vectors themselves.
void check_model(const QuantizedModel& model, ThreadPool* pool) {
  const std::string where = "quantized model: ";
  if (model.tokenizer_model.size() > kMostTokenizerBytes)
    throw InputError(fmt::format("{}a tokenizer of {} bytes, at most {} are allowed", where, model.tokenizer_model.size(),
                                 kMostTokenizerBytes));
  if (!model.tokenizer_model.empty() && model.tokenizer.empty())
    throw InputError(where + "carries a tokenizer that it does not name");
  decode_table(encode_table(model.tensors), model.model, where);
  for_each_index(pool, model.tensors.size(), [&](size_t i) {
    const QuantizedTensor& tensor = model.tensors[i];
    QuantizedTensor blank = tensor;
    blank.q = {}, blank.scale = {}, blank.halves = {}, blank.singles = {};
    blank.correction = {.rank = tensor.correction.rank, .group = tensor.correction.group};
    allocate_values(blank);
    const LowRankCorrection &have = tensor.correction, &want = blank.correction;
    if (tensor.q.size() != blank.q.size() || tensor.scale.size() != blank.scale.size() ||
        tensor.halves.size() != blank.halves.size() || tensor.singles.size() != blank.singles.size() ||
        (!tensor.columns.empty() && tensor.columns.size() != static_cast<size_t>(tensor.cols)) ||
        have.a.size() != want.a.size() || have.b.size() != want.b.size() || have.b_scale.size() != want.b_scale.size()) {
      throw InputError(where + tensor_name(tensor.bank, tensor.slice) +
                       " holds other numbers of values than its sizes and coding imply");
    }
    check_weights(tensor, where);
    check_values(tensor, where);
  });
}

struct CodedValues {
  const ValuePart* part;
  size_t plain_bytes = 0;
  Section section;
};

std::vector<CodedValues> code_values(const std::vector<QuantizedTensor>& tensors, const PackOptions& options) {
  std::vector<CodedValues> coded;
  for (const ValuePart& part : kValueParts) coded.push_back({&part, 0, {}});
  for_each_index(options.pool, coded.size(), [&](size_t i) {
    CodedValues& own = coded[i];
    std::string values;
    for (const QuantizedTensor& tensor : tensors) values.append(own.part->data(tensor), own.part->bytes(tensor));
    own.plain_bytes = values.size();
    if (!values.empty()) own.section = encode_value_section(values, own.part->width, options.codec);
  });
  return coded;
}

}  // namespace

uint64_t Ledger::total() const {
  return std::accumulate(lines.begin(), lines.end(), uint64_t{0},
                         [](uint64_t sum, const LedgerLine& line) { return sum + line.bytes; });
}

CodedWeights code_weights(const QuantizedModel& model, const PackOptions& options) {
  check_model(model, options.pool);
  return code_streams(weight_streams(model.tensors, model.model.layers), options);
}

std::string write_artifact(const QuantizedModel& model, const PackOptions& options, Ledger* ledger) {
  return write_artifact(model, code_weights(model, options), options, ledger);
}

std::string write_artifact(const QuantizedModel& model, const CodedWeights& weights, const PackOptions& options,
                           Ledger* ledger) {
  check_model(model, options.pool);
  Ledger own;
  Ledger& book = ledger == nullptr ? own : *ledger;
  book = {};
  std::string out = header_bytes(model);
  Writer writer(out, book);
  writer.enter("header", Codec::raw, out.size());
  writer.text("architecture", architecture_text(model.model));
  writer.text("tensor table", encode_table(model.tensors));
  for (size_t role = 0; role < weights.streams.size(); ++role) {
    const CodedStream& stream = weights.streams[role];
    if (stream.weights == 0) continue;
    book.entropy_bits += stream.entropy_bits;
    book.weights += stream.weights;
    book.weight_bytes += writer.data(fmt::format("weights: {}", name_of(static_cast<StreamRole>(role))), stream.section,
                                     static_cast<uint64_t>(stream.weights));
  }
  for (const CodedValues& values : code_values(model.tensors, options))
    if (values.plain_bytes > 0) writer.data(values.part->name, values.section, values.plain_bytes);
  if (!model.tokenizer_model.empty()) writer.text("tokenizer", model.tokenizer_model);
  const uint32_t checksum = artifact_checksum(out);
  out.append(reinterpret_cast<const char*>(&checksum), kChecksumBytes);
  writer.enter("checksum", Codec::raw, kChecksumBytes);
  FAIRWAY_ASSERT(book.total() == out.size(), "the ledger does not account for every byte");
  if (read_artifact(out, "the packed bytes", {.pool = options.pool}) != model)
    throw WorkError("the packed bytes do not read back to the quantized model; nothing was written");
  return out;
}

uint64_t carried_bytes(std::string_view tokenizer_model) {
  std::string out;
  Ledger book;
  Writer(out, book).text("tokenizer", tokenizer_model);
  return out.size();
}

void save_artifact(const std::filesystem::path& path, std::string_view bytes) { write_file_atomic(path, bytes); }

PackedSize estimate_size(const QuantizedModel& model, std::span<const double> order0) {
  PackedSize size;
  size_t next = 0;
  for (const QuantizedTensor& t : model.tensors) {
    if (t.coding == TensorCoding::integer_rows) {
      size.weights += (next < order0.size() ? order0[next] : entropy_of(t.q, t.trellis)) / 8 * 1.0003 + 4;
      ++next;
      size.scales += 1.25 * static_cast<double>(t.rows);  // the high byte of a scale says little
    }
    for (const ValuePart& part : kValueParts) {
      if (&part != &kValueParts[0]) size.rest += 0.85 * static_cast<double>(part.bytes(t));
    }
    size.rest += 3;  // its line of the table
  }
  size.rest += 600;  // header, architecture, framing
  return size;
}

}  // namespace fairway
