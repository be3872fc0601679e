#include "interchange/group_container.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "interchange/decompress.h"
#include "interchange/limits.h"
#include "interchange/little_endian.h"

namespace fairway::interchange {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kMagic = "PGRP";
constexpr uint32_t kSecondVersion = 2, kStreams = 9;  // the first version has the number of its streams there
constexpr size_t kMostLayers = 256;
constexpr size_t kRestStream = 7, kOrderStream = 8;

// Streams 0 to 6 of the first version. Rows of sorted groups stand in another order, which stream 8 gives.
struct Group {
  std::string_view name, before,
      after;  // before, after: of the layer's number in a tensor's name; before is empty for the token table
  bool sorted;
};
constexpr std::array<Group, 7> kGroups{{{"_tok_emb.weight.q", "", "tok_emb.weight.q", true},
                                        {"attn.c_k.weight.q", "blocks.", ".attn.c_k.weight.q", false},
                                        {"attn.c_q.weight.q", "blocks.", ".attn.c_q.weight.q", true},
                                        {"attn.c_v.weight.q", "blocks.", ".attn.c_v.weight.q", false},
                                        {"attn.proj.weight.q", "blocks.", ".attn.proj.weight.q", false},
                                        {"mlp.fc.weight.q", "blocks.", ".mlp.fc.weight.q", true},
                                        {"mlp.proj.weight.q", "blocks.", ".mlp.proj.weight.q", false}}};

class Bytes {
 public:
  Bytes(std::string_view bytes, std::string name) : left_(bytes), name_(std::move(name)) {}
  std::string_view take(uint64_t count, const std::string& what) {
    if (count > left_.size())
      throw InputError(fmt::format("{}: {} of {} bytes runs past the end ({} left)", name_, what, count, left_.size()));
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  template <class Number>
  Number number(const std::string& what) {
    return number_at<Number>(take(sizeof(Number), what), 0);
  }
  size_t left() const { return left_.size(); }
  void require_end() const {
    if (!left_.empty()) throw InputError(fmt::format("{}: {} bytes follow its end", name_, left_.size()));
  }

 private:
  std::string_view left_;
  std::string name_;
};

struct Matrix {
  std::string name;
  uint64_t rows = 0, cols = 0;
  std::string_view order;  // u16 a row; empty: as they stand
};

// Shapes are claims until this has seen all of them.
uint64_t bytes_of(const std::vector<Matrix>& matrices, uint64_t most, const std::string& name) {
  uint64_t total = 0;
  for (const Matrix& m : matrices) {
    if (m.rows == 0 || m.cols == 0) throw InputError(fmt::format("{}: matrix '{}' has no rows or no columns", name, m.name));
    if (m.rows > most || m.cols > most || (m.cols > 0 && m.rows > (most - total) / m.cols))
      throw InputError(
          fmt::format("{}: matrix '{}' of {} rows and {} columns is larger than the limit for a file of its size ({} bytes)",
                      name, m.name, m.rows, m.cols, most));
    total += m.rows * m.cols;
  }
  return total;
}

// Stored row k of the transposed matrix is row order[k].
StoredTensor restored(const Matrix& m, std::string_view transposed, const std::string& name) {
  std::vector<uint32_t> order(m.rows);
  std::iota(order.begin(), order.end(), 0U);
  std::vector<bool> seen(m.order.empty() ? 0 : m.rows);
  for (uint64_t k = 0; k < seen.size(); ++k) {
    order[k] = number_at<uint16_t>(m.order, 2 * k);
    if (order[k] >= m.rows || seen[order[k]])
      throw InputError(
          fmt::format("{}: the row order of '{}' has {} at place {}, {}", name, m.name, order[k], k,
                      order[k] >= m.rows ? fmt::format("and the matrix has {} rows", m.rows) : "which it has twice"));
    seen[order[k]] = true;
  }
  std::string values(m.rows * m.cols, '\0');
  for (uint64_t c = 0; c < m.cols; ++c)
    for (uint64_t k = 0; k < m.rows; ++k) values[order[k] * m.cols + c] = transposed[c * m.rows + k];
  return dense_tensor(ElementType::i8, {static_cast<int64_t>(m.rows), static_cast<int64_t>(m.cols)}, std::move(values));
}

void add_matrices(const std::vector<Matrix>& matrices, std::string_view values, const std::string& name, StoredTensors& out) {
  for (const Matrix& m : matrices) {
    if (!out.emplace(m.name, restored(m, values.substr(0, m.rows * m.cols), name)).second)
      throw InputError(fmt::format("{}: holds the matrix '{}' twice", name, m.name));
    values.remove_prefix(m.rows * m.cols);
  }
}

std::shared_ptr<const std::string> torch_bytes(std::string_view coded, const std::string& where) {
  std::string bytes = decompress_brotli(coded, most_decompressed(coded.size()), where);
  if (is_shuffled(bytes)) bytes = unshuffled(bytes, where);
  return std::make_shared<const std::string>(std::move(bytes));
}

// 's' of the first version: {group: [(rows, cols), …]}, a matrix a layer.
std::array<std::vector<Matrix>, kGroups.size()> claimed_matrices(const TorchFile& file) {
  const Pickle& pickle = file.pickle();
  std::array<std::vector<Matrix>, kGroups.size()> out;
  for (const auto& [key, value] : pickle.members(pickle.top(), "the file")) {
    if (key != "s") continue;
    for (const auto& [group, shapes] : pickle.members(value, "'s'")) {
      const std::string_view name = group;
      const auto* row = std::find_if(kGroups.begin(), kGroups.end(), [&](const Group& g) { return g.name == name; });
      if (row == kGroups.end())
        pickle.refuse("'s' has a group '" + std::string(name.substr(0, 80)) + "', which is none of the seven");
      const auto number = static_cast<size_t>(row - kGroups.begin());
      if (pickle[shapes].kind != Kind::list) pickle.refuse("'s' of group '" + std::string(name) + "' is no list of shapes");
      if (pickle[shapes].items.size() > kMostLayers)
        pickle.refuse("'s' of group '" + std::string(name) + "' has more than 256 shapes");
      for (const PickleRef shape : pickle[shapes].items) {
        const PickleValue& pair = pickle[shape];
        const auto size = [&](size_t i) {
          return pickle[pair.items[i]].kind == Kind::integer ? pickle[pair.items[i]].integer : -1;
        };
        if (pair.kind != Kind::tuple || pair.items.size() != 2 || size(0) < 0 || size(1) < 0)
          pickle.refuse("'s' of group '" + std::string(name) + "' holds something that is not (rows, columns)");
        const std::string layer = row->before.empty() ? "" : std::to_string(out[number].size());
        out[number].push_back({std::string(row->before) + layer + std::string(row->after),
                               static_cast<uint64_t>(size(0)),
                               static_cast<uint64_t>(size(1)),
                               {}});
      }
    }
  }
  return out;
}

GroupContainer read_first(Bytes in, uint64_t file_bytes, const std::string& name, const Unlrzip& unlrzip) {
  std::array<uint32_t, kStreams> lengths{};
  for (uint32_t& length : lengths) length = in.number<uint32_t>("the table of lengths");
  std::array<std::string_view, kStreams> streams;
  for (size_t i = 0; i < kStreams; ++i) streams[i] = in.take(lengths[i], fmt::format("stream {}", i));
  in.require_end();
  const uint64_t most = most_decompressed(file_bytes);
  GroupContainer out{.version = 1, .matrices = {}, .rest = torch_bytes(streams[kRestStream], name + ", stream 7")};
  auto groups = claimed_matrices(TorchFile(out.rest, name + ", stream 7"));
  const std::string order = decompress_brotli(streams[kOrderStream], most, name + ", stream 8");
  Bytes orders(order, name + ", stream 8 (row orders)");
  uint64_t total = 0;
  for (size_t i = 0; i < kGroups.size(); ++i) {
    total += bytes_of(groups[i], most - total, name);
    if (kGroups[i].sorted)
      for (Matrix& m : groups[i]) m.order = orders.take(2 * m.rows, "the order of '" + m.name + "'");
  }
  orders.require_end();
  for (size_t i = 0; i < kGroups.size(); ++i) {
    const std::string where = fmt::format("{}, stream {} ({})", name, i, kGroups[i].name);
    const uint64_t bytes = bytes_of(groups[i], most, name);
    if ((bytes == 0) != streams[i].empty())
      throw InputError(fmt::format("{}: {} bytes of data for {} bytes of matrices", where, streams[i].size(), bytes));
    if (bytes > 0) add_matrices(groups[i], unlrzip(streams[i], bytes, where), name, out.matrices);
  }
  return out;
}

GroupContainer read_second(Bytes in, uint64_t file_bytes, const std::string& name, const Unlrzip& unlrzip) {
  const auto count = in.number<uint32_t>("the number of matrices");
  std::vector<Matrix> matrices;
  for (uint32_t i = 0; i < count; ++i) {
    Matrix m{.name = tensor_name(in.take(in.number<uint16_t>("a name's length"), "a name"), name)};
    m.rows = in.number<uint32_t>("rows of '" + m.name + "'");
    m.cols = in.number<uint32_t>("columns of '" + m.name + "'");
    m.order = in.take(2 * m.rows, "the order of '" + m.name + "'");
    matrices.push_back(std::move(m));
  }
  const uint64_t most = most_decompressed(file_bytes), bytes = bytes_of(matrices, most, name);
  const auto method = in.number<uint8_t>("the method");
  if (method > 1)
    throw InputError(
        fmt::format("{}: its matrices are compressed with method {}; expected 0 (Brotli) or 1 (lrzip)", name, method));
  const std::string_view coded = in.take(in.number<uint32_t>("the matrices' size"), "the matrices");
  const std::string_view rest = in.take(in.number<uint32_t>("the rest's size"), "the rest");
  in.require_end();
  const std::string values =
      method == 0 ? decompress_brotli(coded, bytes + 1, name + ", matrices") : unlrzip(coded, bytes, name + ", matrices");
  if (values.size() != bytes)
    throw InputError(fmt::format("{}: its matrices decompress to {} bytes; expected {}", name, values.size(), bytes));
  GroupContainer out{.version = 2, .matrices = {}, .rest = torch_bytes(rest, name + ", rest")};
  add_matrices(matrices, values, name, out.matrices);
  return out;
}

}  // namespace

bool is_group_container(std::string_view bytes) { return bytes.starts_with(kMagic); }

GroupContainer read_group_container(std::string_view bytes, const std::string& name, const Unlrzip& unlrzip) {
  Bytes in(bytes, name);
  in.take(kMagic.size(), "the magic");
  const auto word = in.number<uint32_t>("the second word");
  if (word == kStreams) return read_first(in, bytes.size(), name, unlrzip);
  if (word == kSecondVersion) return read_second(in, bytes.size(), name, unlrzip);
  throw InputError(fmt::format("{}: a group container (PGRP) whose second word is {}; expected 9 (first version) or 2 (second)",
                               name, word));
}

}  // namespace fairway::interchange
