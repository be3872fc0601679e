#include "model/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace fairway {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100ULL << 20;  // as the format's own readers
constexpr int kMaxDepth = 8;

struct TypeName {
  const char* name;
  DType dtype;
};
constexpr TypeName kTypes[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16}, {"I32", DType::i32},
    {"U16", DType::u16}, {"U8", DType::u8},   {"F16", DType::u16}};  // no type of ours: whoever takes it asks for the stored
                                                                     // type

[[noreturn]] void refuse(const std::string& file, const std::string& sentence) { throw InputError(file + ": " + sentence); }

// Parses JSON while refusing repeated keys at any level and deep nesting, which the library itself lets pass.
json parse_header(const std::string& text, const std::string& file) {
  require_flat_json(text, file + ": the header", kMaxDepth);
  std::vector<std::set<std::string>> keys;
  std::optional<std::string> repeated;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.empty() && !keys.back().insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  json header;
  try {
    header = json::parse(text, watch);
  } catch (const json::exception& error) {
    refuse(file, std::string("the header is not JSON: ") + error.what());
  }
  if (repeated) refuse(file, "the header has the key '" + *repeated + "' twice");
  if (!header.is_object()) refuse(file, "the header is not a JSON object");
  return header;
}

struct Entry {
  std::string name;
  const char* type = "";
  Spec spec;
  uint64_t begin = 0, end = 0;
};

Entry read_entry(const std::string& name, const json& value, uint64_t data_bytes, const std::string& file) {
  const std::string where = "tensor '" + name + "': ";
  Entry entry{.name = name};
  const auto natural = [](const json& number) { return number.is_number_unsigned(); };
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets")) {
    refuse(file, where + "expected dtype, shape and data_offsets");
  }
  const json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return dtype == t.name; });
  if (type == std::end(kTypes))
    refuse(file, where + "dtype " + dtype.dump() + " is not one of F32, F64, F16, BF16, I32, U16, U8");
  entry.type = type->name;
  entry.spec.dtype = type->dtype;
  if (!shape.is_array() || shape.size() > 4 || !std::all_of(shape.begin(), shape.end(), natural)) {
    refuse(file, where + "shape " + shape.dump() + " is not a list of at most four sizes");
  }
  uint64_t elements = 1;
  for (const json& size : shape) {
    const auto extent = size.get<uint64_t>();
    // An axis beside one of size zero is not bounded by the data, but still has to be a size.
    if (extent > kMostSafetensorsBytes || (extent != 0 && elements > (data_bytes + 1) / extent))
      refuse(file, where + "shape " + shape.dump() + " is larger than the file");
    elements *= extent;
    entry.spec.shape.dims[entry.spec.shape.rank++] = static_cast<int64_t>(extent);
  }
  if (shape.empty()) entry.spec.shape = Shape{1};
  if (!offsets.is_array() || offsets.size() != 2 || !natural(offsets[0]) || !natural(offsets[1])) {
    refuse(file, where + "data_offsets " + offsets.dump() + " is not [begin, end]");
  }
  entry.begin = offsets[0].get<uint64_t>(), entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end || entry.end > data_bytes)
    refuse(file, where + "data_offsets " + offsets.dump() + " lie outside of the file");
  if (entry.end - entry.begin != elements * size_of(entry.spec.dtype)) {
    refuse(file, where + "data_offsets " + offsets.dump() + " do not hold shape " + shape.dump() + " of " + type->name);
  }
  return entry;
}

}  // namespace

Safetensors Safetensors::read(const std::filesystem::path& path) {
  return parse(read_file(path, kMostSafetensorsBytes), path.string());
}

Safetensors Safetensors::parse(std::string bytes, const std::string& name) {
  Safetensors out;
  out.name_ = name;
  if (bytes.size() < 8) refuse(name, "too short for a safetensors file (" + std::to_string(bytes.size()) + " bytes)");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  if (header_bytes > kMaxHeader || header_bytes > bytes.size() - 8) {
    refuse(name, "header length " + std::to_string(header_bytes) + " is larger than the file or 100 MiB");
  }
  const json header = parse_header(bytes.substr(8, header_bytes), name);
  const uint64_t data_bytes = bytes.size() - 8 - header_bytes;
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.items()) {
    if (key != "__metadata__") {
      entries.push_back(read_entry(key, value, data_bytes, name));
      continue;
    }
    if (!value.is_object()) refuse(name, "__metadata__ is not an object");
    for (const auto& [field, text] : value.items()) {
      if (!text.is_string()) refuse(name, "__metadata__." + field + " is not a string");
      out.metadata_[field] = text.get<std::string>();
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  uint64_t expected = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != expected)
      refuse(name, "tensor '" + entry.name + "' " + (entry.begin < expected ? "overlaps another" : "leaves a hole before it"));
    expected = entry.end;
  }
  if (expected != data_bytes) refuse(name, std::to_string(data_bytes - expected) + " bytes after the last tensor");
  out.aligned_.resize(data_bytes + 8 * entries.size());
  size_t used = 0;
  for (const Entry& entry : entries) {  // offsets in the file need not be aligned, ours are
    std::memcpy(out.aligned_.data() + used, bytes.data() + 8 + header_bytes + entry.begin, entry.end - entry.begin);
    out.tensors_[entry.name] = make_view(out.aligned_.data() + used, entry.spec);
    out.types_[entry.name] = entry.type;
    used += (entry.end - entry.begin + 7) / 8 * 8;
  }
  return out;
}

Tensor Safetensors::get(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end()) refuse(name_, "has no tensor '" + tensor + "'");
  return found->second;
}

const std::string& Safetensors::stored_type(const std::string& tensor) const {
  get(tensor);
  return types_.at(tensor);
}

namespace {

template <class Real>
void require_finite_values(const Safetensors& file, const std::string& name, const Tensor& tensor) {
  const Real* values = tensor.as<Real>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (!std::isfinite(values[i]))
      refuse(file.name(), "tensor '" + name + "': value " + std::to_string(i) + " is " + std::to_string(values[i]) +
                              "; expected finite numbers");
  }
}

}  // namespace

void require_finite_tensors(const Safetensors& file) {
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.spec.dtype == DType::f32) require_finite_values<float>(file, name, tensor);
    if (tensor.spec.dtype == DType::f64) require_finite_values<double>(file, name, tensor);
  }
}

std::string safetensors_header(const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const NamedTensor& entry : tensors) {
    const Spec& spec = entry.tensor.spec;
    const auto type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return spec.dtype == t.dtype; });
    std::vector<int64_t> shape(spec.shape.dims.begin(), spec.shape.dims.begin() + spec.shape.rank);
    if (entry.scalar) shape.clear();
    header[entry.name] = {{"dtype", type->name}, {"shape", shape}, {"data_offsets", {offset, offset + spec.bytes()}}};
    offset += spec.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the format pads the header with spaces
  const uint64_t header_bytes = text.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &header_bytes, 8);
  return out + text;
}

void save_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  const std::string header = safetensors_header(tensors, metadata);
  file.write(header.data(), header.size());
  for (const NamedTensor& entry : tensors) file.write(entry.tensor.data, entry.tensor.spec.bytes());
  file.commit();
}

}  // namespace fairway
