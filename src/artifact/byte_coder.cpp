#include "artifact/byte_coder.h"

#include <vector>

#include "artifact/rans.h"
#include "base/error.h"

namespace fairway {
namespace {

constexpr size_t kRun = 32;  // symbols between two looks at the model

// Walks a plane as both sides do; code(model, i, lane) codes the byte at i.
template <class Code>
void walk_plane(size_t count, SymbolModel::Use use, Code&& code) {
  SymbolModel model;
  const std::vector<uint32_t> flat(256, SymbolModel::kObservation / 4);
  model.begin(flat);
  model.refresh({}, use);
  for (size_t i = 0; i < count; ++i) {
    code(model, i, static_cast<int>(i & 1));
    if (i % kRun == kRun - 1 && model.due()) model.refresh({}, use);
  }
}

std::string encode_plane(std::string_view values, size_t width, size_t plane) {
  RansEncoder rans;
  walk_plane(values.size() / width, SymbolModel::Use::encode, [&](SymbolModel& model, size_t i, int lane) {
    const int symbol = static_cast<uint8_t>(values[i * width + plane]);
    rans.put(model.range(symbol), lane);
    model.note(symbol);
  });
  return rans.finish();
}

void decode_plane(std::string_view coded, size_t width, size_t plane, std::string& out, const std::string& where) {
  RansDecoder rans(coded);
  walk_plane(out.size() / width, SymbolModel::Use::decode, [&](SymbolModel& model, size_t i, int lane) {
    const int symbol = rans.get(model, lane);
    model.note(symbol);
    out[i * width + plane] = static_cast<char>(symbol);
    if (rans.ran_out()) throw InputError(where + "the coded values end before all are decoded");
  });
  if (!rans.ended_well()) throw InputError(where + "the coded values do not end where their plane does");
}

}  // namespace

// Per plane, the highest first: a length of four bytes (0: kept as it is), then its bytes.
std::string encode_values(std::string_view values, size_t width) {
  const size_t count = values.size() / width;
  std::string out;
  for (size_t plane = width; plane-- > 0;) {
    std::string bytes = encode_plane(values, width, plane);
    auto length = static_cast<uint32_t>(bytes.size());
    if (bytes.size() >= count) {
      length = 0, bytes.clear();
      for (size_t i = 0; i < count; ++i) bytes += values[i * width + plane];
    }
    out.append(reinterpret_cast<const char*>(&length), 4);
    out += bytes;
  }
  return out;
}

std::string decode_values(std::string_view coded, size_t width, size_t bytes, const std::string& where) {
  const size_t count = bytes / width;
  std::string out(bytes, '\0');
  for (size_t plane = width; plane-- > 0;) {
    if (coded.size() < 4) throw InputError(where + "a plane of the coded values is missing");
    uint32_t length = 0;
    std::memcpy(&length, coded.data(), 4);
    coded.remove_prefix(4);
    const size_t taken = length == 0 ? count : length;
    if (taken > coded.size()) {
      throw InputError(where + "a plane of " + std::to_string(taken) + " bytes is longer than the " +
                       std::to_string(coded.size()) + " that are left");
    }
    if (length == 0) {
      for (size_t i = 0; i < count; ++i) out[i * width + plane] = coded[i];
    } else {
      decode_plane(coded.substr(0, taken), width, plane, out, where);
    }
    coded.remove_prefix(taken);
  }
  if (!coded.empty()) throw InputError(where + std::to_string(coded.size()) + " bytes after the last plane");
  return out;
}

}  // namespace fairway
