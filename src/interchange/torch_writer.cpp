#include "interchange/torch_writer.h"

#include <array>
#include <limits>

#include "base/error.h"
#include "interchange/little_endian.h"

namespace fairway::interchange {
namespace {

constexpr std::array<std::string_view, 10> kStorageNames{"Float", "Double", "Half", "BFloat16", "Char",
                                                         "Byte",  "Short",  "Int",  "Long",     "Bool"};

void put_text(std::string& out, std::string_view text) {
  out += 'X';
  put_number(out, static_cast<uint32_t>(text.size()));
  out += text;
}
void put_integer(std::string& out, int64_t value) {
  if (value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()) {
    out += 'J';
    put_number(out, static_cast<int32_t>(value));
    return;
  }
  out += "\x8A\x08";
  put_number(out, value);
}
void put_tuple(std::string& out, const Extents& numbers) {
  out += '(';
  for (const int64_t number : numbers) put_integer(out, number);
  out += 't';
}

}  // namespace

TorchWriter::TorchWriter(std::string folder) : folder_(std::move(folder)), pickle_("\x80\x02") {}

void TorchWriter::begin_dict() { pickle_ += "}("; }
void TorchWriter::end_dict() { pickle_ += 'u'; }
void TorchWriter::text(std::string_view text) { put_text(pickle_, text); }
void TorchWriter::number(int64_t value) { put_integer(pickle_, value); }

void TorchWriter::tensor(ElementType type, const Extents& shape, std::string_view bytes) {
  FAIRWAY_ASSERT(static_cast<size_t>(count_of(shape)) * size_of(type) == bytes.size(), "a tensor's bytes are not its shape's");
  zip_.add(folder_ + "/data/" + std::to_string(storages_.size()), bytes);
  storages_.push_back({type, count_of(shape)});
  view(storages_.size() - 1, shape, dense_strides(shape), 0);
}

void TorchWriter::view(size_t storage, const Extents& shape, const Extents& strides, int64_t offset) {
  const Storage& from = storages_[storage];
  pickle_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
  put_text(pickle_, "storage");
  pickle_ += "ctorch\n" + std::string(kStorageNames[static_cast<size_t>(from.type)]) + "Storage\n";
  put_text(pickle_, std::to_string(storage));
  put_text(pickle_, "cpu");
  put_integer(pickle_, from.count);
  pickle_ += "tQ";
  put_integer(pickle_, offset);
  put_tuple(pickle_, shape);
  put_tuple(pickle_, strides);
  pickle_ +=
      "\x89"
      "ccollections\nOrderedDict\n)RtR";  // no gradient, no hooks
}

std::string TorchWriter::finish() && {
  pickle_ += '.';
  zip_.add(folder_ + "/data.pkl", pickle_);
  zip_.add(folder_ + "/byteorder", "little");
  zip_.add(folder_ + "/version", "3\n");
  return std::move(zip_).finish();
}

}  // namespace fairway::interchange
