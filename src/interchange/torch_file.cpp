#include "interchange/torch_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "interchange/limits.h"

namespace fairway::interchange {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kPickleEntry = "data.pkl";

struct StorageName {
  std::string_view name;
  ElementType type;
};
constexpr std::array<StorageName, 10> kStorages{{{"torch\nFloatStorage", ElementType::f32},
                                                 {"torch\nDoubleStorage", ElementType::f64},
                                                 {"torch\nHalfStorage", ElementType::f16},
                                                 {"torch\nBFloat16Storage", ElementType::bf16},
                                                 {"torch\nCharStorage", ElementType::i8},
                                                 {"torch\nByteStorage", ElementType::u8},
                                                 {"torch\nShortStorage", ElementType::i16},
                                                 {"torch\nIntStorage", ElementType::i32},
                                                 {"torch\nLongStorage", ElementType::i64},
                                                 {"torch\nBoolStorage", ElementType::boolean}}};

// The folder's name is the stem of the name that the file was saved under, and the file may have been renamed.
std::string folder_of(const ZipArchive& archive, const std::string& name) {
  std::optional<std::string> folder;
  for (const auto& [entry, place] : archive.entries()) {
    const size_t slash = entry.rfind('/');
    if (slash == std::string::npos || std::string_view(entry).substr(slash + 1) != kPickleEntry) continue;
    if (folder) throw InputError(fmt::format("{}: has two pickles, '{}data.pkl' and '{}'", name, *folder, entry));
    folder = entry.substr(0, slash + 1);
  }
  if (!folder) throw InputError(name + ": a zip file without an entry */data.pkl; expected what torch.save writes");
  return *folder;
}

}  // namespace

TorchFile::TorchFile(std::shared_ptr<const std::string> bytes, const std::string& name)
    : bytes_(std::move(bytes)),
      archive_(*bytes_, name),
      folder_(folder_of(archive_, name)),
      pickle_(archive_.read(folder_ + std::string(kPickleEntry), "the pickle"), name) {
  const std::string order = folder_ + "byteorder";
  if (archive_.has(order) && archive_.read(order, "the byte order") != "little")
    pickle_.refuse("its byte order is '" + std::string(archive_.read(order, "the byte order").substr(0, 16)) +
                   "'; expected little");
}

bool TorchFile::is_tensor(PickleRef ref) const { return pickle_[ref].kind == Kind::call; }

std::vector<PickleRef> TorchFile::arguments(PickleRef call, size_t least, size_t most, const std::string& of_tensor) const {
  const std::vector<PickleRef>& given = pickle_[pickle_[call].items[0]].items;
  if (given.size() < least || given.size() > most)
    pickle_.refuse(fmt::format("{} is made from {} arguments; expected {}", of_tensor, given.size(), least));
  return given;
}

Extents TorchFile::extents(PickleRef tuple, const std::string& what) const {
  const PickleValue& value = pickle_[tuple];
  if (value.kind != Kind::tuple || value.items.size() > kMostAxes)
    pickle_.refuse(fmt::format("{} is a {} of {}; expected a tuple of at most {} numbers", what, name_of(value.kind),
                               value.items.size(), kMostAxes));
  Extents out;
  for (const PickleRef item : value.items) {
    if (pickle_[item].kind != Kind::integer || pickle_[item].integer < 0)
      pickle_.refuse(what + " holds something that is no size");
    out.push_back(pickle_[item].integer);
  }
  return out;
}

// Its id: ('storage', type, key, location, elements). Where the tensor lay (cuda:0) does not matter.
TorchFile::Storage TorchFile::storage(PickleRef persistent, const std::string& of_tensor) {
  if (pickle_[persistent].kind != Kind::persistent) pickle_.refuse(of_tensor + " has no storage");
  const PickleValue& id = pickle_[pickle_[persistent].items[0]];
  const auto is = [&](size_t item, Kind kind) { return pickle_[id.items[item]].kind == kind; };
  if (id.kind != Kind::tuple || id.items.size() != 5 || !is(0, Kind::text) || pickle_[id.items[0]].text != "storage" ||
      !is(1, Kind::global) || !is(2, Kind::text) || !is(4, Kind::integer))
    pickle_.refuse(of_tensor + ": its storage is not ('storage', type, key, location, count)");
  const std::string_view spelled = pickle_[id.items[1]].text;
  const std::string key(pickle_[id.items[2]].text.substr(0, 256));
  const int64_t count = pickle_[id.items[4]].integer;
  const StorageName* type =
      std::find_if(kStorages.begin(), kStorages.end(), [&](const StorageName& s) { return s.name == spelled; });
  if (type == kStorages.end())
    pickle_.refuse(of_tensor + ": its storage is a " + std::string(spelled.substr(spelled.find('\n') + 1)) +
                   ", which weights are not stored in");
  const std::string entry = folder_ + "data/" + key;
  const auto known = storages_.find(entry);
  const std::string_view bytes = known != storages_.end() ? known->second : archive_.read(entry, of_tensor);
  storages_.emplace(entry, bytes);
  if (count < 0 || static_cast<uint64_t>(count) > bytes.size() ||
      static_cast<uint64_t>(count) * size_of(type->type) != bytes.size())
    pickle_.refuse(fmt::format("{}: its storage '{}' is declared as {} elements of {}, and has {} bytes", of_tensor, entry,
                               count, name_of(type->type), bytes.size()));
  return {type->type, bytes};
}

StoredTensor TorchFile::tensor(PickleRef ref, const std::string& name) {
  const std::string what = "tensor '" + name + "'";
  if (!is_tensor(ref)) pickle_.refuse(fmt::format("'{}' is a {}; expected a tensor", name, name_of(pickle_[ref].kind)));
  if (pickle_[ref].text == kRebuildParameter) {
    ref = arguments(ref, 3, 3, what)[0];
    if (!is_tensor(ref) || pickle_[ref].text != kRebuildTensor) pickle_.refuse(what + " is a parameter without a tensor");
  }
  const std::vector<PickleRef> given = arguments(ref, 6, 7, what);
  const Storage from = storage(given[0], what);
  const PickleValue& offset = pickle_[given[1]];
  if (offset.kind != Kind::integer || offset.integer < 0) pickle_.refuse(what + ": its offset is no number");
  StoredTensor out{from.type, extents(given[2], what + ": its shape"), extents(given[3], what + ": its strides"), bytes_};
  if (out.shape.size() != out.strides.size()) pickle_.refuse(what + ": shape and strides differ in length");
  const uint64_t elements = from.bytes.size() / size_of(from.type);
  require_elements(out.shape, what, pickle_.where());
  uint64_t count = 1, last = static_cast<uint64_t>(offset.integer);
  bool inside = last <= elements;
  for (size_t axis = 0; inside && axis < out.shape.size(); ++axis) {
    const auto extent = static_cast<uint64_t>(out.shape[axis]), stride = static_cast<uint64_t>(out.strides[axis]);
    inside = extent <= elements && (extent == 1 || stride <= elements);
    if (inside && extent > 1) last += (extent - 1) * stride;  // below 2⁶⁴: both are sizes of what lies in the file
    inside = inside && last < elements && extent * count <= elements;
    count *= extent;
  }
  if (!inside || last >= elements)
    pickle_.refuse(fmt::format("{}: shape {} with strides {} from element {} runs past its storage of {} elements", what,
                               text_of(out.shape), text_of(out.strides), offset.integer, elements));
  out.begin =
      static_cast<size_t>(from.bytes.data() - bytes_->data()) + static_cast<size_t>(offset.integer) * size_of(from.type);
  return out;
}

StoredTensors TorchFile::tensors(PickleRef dict, const std::string& what) {
  StoredTensors out;
  for (const auto& [key, value] : pickle_.members(dict, what)) {
    const std::string name = tensor_name(key, pickle_.where());
    out.emplace(name, tensor(value, name));
  }
  return out;
}

}  // namespace fairway::interchange
