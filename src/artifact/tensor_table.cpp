#include "artifact/tensor_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "artifact/byte_reader.h"
#include "model/shape/model_shape.h"

namespace fairway {
namespace {

constexpr std::array<std::string_view, kStreamRoles> kRoleNames{"token",  "query", "key",  "value",
                                                                "output", "up",    "down", "other"};
constexpr int kHalfCode = 16, kSingleCode = 32;   // integer rows: the bits themselves
constexpr int kColumnSteps = 64, kTrellis = 128;  // added to the bits where steps differ by column, where q follow a trellis
constexpr int64_t kMostRank = 256, kLeastGroup = 8, kMostGroup = 65536;
constexpr int kGroupShift = 9;  // rank and, where it is not the usual one, group of a correction in one number

uint64_t correction_code(const LowRankCorrection& c) {
  const bool usual = c.rank == 0 || c.group == kUsualLowRankGroup;
  return static_cast<uint64_t>(c.rank) | (usual ? 0 : static_cast<uint64_t>(c.group) << kGroupShift);
}

LowRankCorrection read_correction(uint64_t code) {
  LowRankCorrection out{.rank = static_cast<int64_t>(code & ((1 << kGroupShift) - 1))};
  if (code >> kGroupShift != 0) out.group = static_cast<int64_t>(code >> kGroupShift);
  return out;
}

int coding_code(const QuantizedTensor& tensor) {
  if (tensor.coding == TensorCoding::integer_rows)
    return tensor.bits + (tensor.columns.empty() ? 0 : kColumnSteps) + (tensor.trellis ? kTrellis : 0);
  return tensor.coding == TensorCoding::half ? kHalfCode : kSingleCode;
}

// by_column: whether it has steps by column, for which there is room once its sizes are known to be right.
QuantizedTensor read_line(ByteReader& reader, const std::string& where, bool& by_column) {
  QuantizedTensor tensor;
  const uint8_t id = reader.byte("the tensor table");
  if (id >= kParamCount) throw InputError(fmt::format("{}tensor table: parameter number {} is not known", where, id));
  tensor.bank = static_cast<ParamId>(id);
  tensor.slice = static_cast<int64_t>(reader.varint("the tensor table")) - 1;
  tensor.rows = static_cast<int64_t>(reader.varint("the tensor table"));
  tensor.cols = static_cast<int64_t>(reader.varint("the tensor table"));
  const int code = reader.byte("the tensor table"), bits = code & ~(kColumnSteps | kTrellis);
  if (bits >= 2 && bits <= 8) {
    tensor.coding = TensorCoding::integer_rows;
    tensor.bits = bits;
    by_column = (code & kColumnSteps) != 0;
    tensor.trellis = (code & kTrellis) != 0;
  } else if (code == kHalfCode || code == kSingleCode) {
    tensor.coding = code == kHalfCode ? TensorCoding::half : TensorCoding::single;
  } else {
    throw InputError(fmt::format("{}tensor table: {} has coding {}, expected 2 to 8, plus 64, 128 or both, or 16 or 32", where,
                                 tensor_name(tensor.bank, tensor.slice), code));
  }
  const uint64_t stored = reader.varint("the tensor table");
  tensor.correction = read_correction(stored);
  const int64_t group = tensor.correction.group;
  if (group < kLeastGroup || group > kMostGroup || correction_code(tensor.correction) != stored)
    throw InputError(fmt::format("{}tensor table: {} has a correction of rank {} in groups of {}, expected groups of {} to {}",
                                 where, tensor_name(tensor.bank, tensor.slice), tensor.correction.rank, group, kLeastGroup,
                                 kMostGroup));
  return tensor;
}

// Against the parameter it names; `slice` is the one that must come next.
void check_sizes(const QuantizedTensor& tensor, const ParamInfo& info, const std::string& where) {
  const size_t rank = info.shape.size();
  int64_t rows = rank < 2 ? 1 : info.count() / info.shape.back(), cols = rank < 2 ? info.count() : info.shape.back();
  if (tensor.slice >= 0) rows = info.shape[1];
  const bool turned = rank < 2 && tensor.rows == cols && tensor.cols == rows;  // a vector may stand upright
  if (!turned && (tensor.rows != rows || tensor.cols != cols)) {
    throw InputError(fmt::format("{}tensor table: {} is {} x {}, the architecture has {} x {}", where,
                                 tensor_name(tensor.bank, tensor.slice), tensor.rows, tensor.cols, rows, cols));
  }
  const int64_t most = tensor.coding == TensorCoding::integer_rows ? std::min({rows, cols, kMostRank}) : 0;
  if (tensor.correction.rank > most) {
    throw InputError(fmt::format("{}tensor table: {} has a correction of rank {}, at most {} is possible", where,
                                 tensor_name(tensor.bank, tensor.slice), tensor.correction.rank, most));
  }
}

// The line that must follow `count` lines of this parameter, or the reason why the one at hand cannot.
void check_place(const QuantizedTensor& tensor, const ParamInfo& info, int64_t slice, const std::string& where) {
  if (tensor.bank == info.id && tensor.slice == slice) return;
  const bool before = tensor.bank == info.id && tensor.slice >= 0 && tensor.slice < slice;
  throw InputError(fmt::format("{}tensor table: {} {}, expected {}[{}]", where, tensor_name(tensor.bank, tensor.slice),
                               before ? "appears twice" : "is out of place", info.name, slice));
}

}  // namespace

std::string_view name_of(StreamRole role) { return kRoleNames[static_cast<size_t>(role)]; }

StreamRole stream_role(const QuantizedTensor& tensor, int64_t layers) {
  return row_of(tensor.bank).kind_of(tensor.slice, layers).stream;
}

std::string encode_table(const std::vector<QuantizedTensor>& tensors) {
  std::string out;
  for (const QuantizedTensor& tensor : tensors) {
    out += static_cast<char>(tensor.bank);
    put_varint(out, static_cast<uint64_t>(tensor.slice + 1));
    put_varint(out, static_cast<uint64_t>(tensor.rows));
    put_varint(out, static_cast<uint64_t>(tensor.cols));
    out += static_cast<char>(coding_code(tensor));
    put_varint(out, correction_code(tensor.correction));
  }
  return out;
}

std::vector<QuantizedTensor> decode_table(std::string_view bytes, const ModelRecipe& model, const std::string& where) {
  ByteReader reader(bytes, where);
  std::vector<QuantizedTensor> tensors;
  for (const ParamInfo& info : parameter_table(model)) {
    const int64_t slices = info.row().block == BlockPart::matrices ? info.shape[0] : 0;
    int64_t next = 0;
    do {
      if (reader.left() == 0)
        throw InputError(fmt::format("{}tensor table: the architecture's parameter {} is missing", where, info.name));
      bool by_column = false;
      QuantizedTensor tensor = read_line(reader, where, by_column);
      if (next > 0 || tensor.bank != info.id || tensor.slice >= 0) {
        if (slices == 0 && tensor.bank == info.id)
          throw InputError(fmt::format("{}tensor table: {} is not cut into slices", where, info.name));
        check_place(tensor, info, next, where);
      } else {
        next = slices;  // stored whole
      }
      check_sizes(tensor, info, where);
      if (by_column) tensor.columns.resize(static_cast<size_t>(tensor.cols));
      if (tensor.slice >= 0) ++next;
      tensors.push_back(std::move(tensor));
    } while (next < slices);
  }
  if (reader.left() != 0)
    throw InputError(fmt::format("{}tensor table: {} bytes after the last parameter", where, reader.left()));
  return tensors;
}

uint64_t value_bytes(const std::vector<QuantizedTensor>& tensors) {
  int64_t total = 0;
  for (const QuantizedTensor& t : tensors) {
    const int64_t rank = t.correction.rank;
    total +=
        t.coding == TensorCoding::integer_rows ? t.count() + 2 * t.rows : t.count() * (t.coding == TensorCoding::half ? 2 : 4);
    total += rank * (t.rows + 2 * t.cols) + static_cast<int64_t>(t.columns.size());
  }
  return static_cast<uint64_t>(total);
}

}  // namespace fairway
