#include "report/tensorboard.h"

#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/writer_lock.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

template <class T>
void append(std::string& out, T value) {  // little-endian, as this program's machines are
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
void append_key(std::string& out, uint32_t field, Wire wire) { append_varint(out, field << 3 | static_cast<uint32_t>(wire)); }

void append_field(std::string& out, uint32_t field, std::string_view bytes) {
  append_key(out, field, Wire::bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8U; }

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
    table[i] = crc;
  }
  return table;
}

// Field numbers of tensorflow.Event: wall_time 1, step 2, file_version 3, summary 5; Summary.value 1; Value: tag 1, float 2.
std::string event(double wall_time, int64_t step) {
  std::string out;
  append_key(out, 1, Wire::fixed64);
  append(out, wall_time);
  append_key(out, 2, Wire::varint);
  append_varint(out, static_cast<uint64_t>(step));
  return out;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

EventFile::EventFile(double wall_time) {
  std::string first = event(wall_time, 0);
  append_field(first, 3, "brain.Event:2");
  record(first);
}

void EventFile::scalar(std::string_view tag, int64_t step, double wall_time, float value) {
  std::string inner, summary, out = event(wall_time, step);
  append_field(inner, 1, tag);
  append_key(inner, 2, Wire::fixed32);
  append(inner, value);
  append_field(summary, 1, inner);
  append_field(out, 5, summary);
  record(out);
}

void EventFile::record(std::string_view event) {
  std::string length;
  append(length, static_cast<uint64_t>(event.size()));
  bytes_ += length;
  append(bytes_, masked(crc32c(length)));
  bytes_ += event;
  append(bytes_, masked(crc32c(event)));
}

fs::path write_tensorboard(const fs::path& run, const fs::path& folder) {
  const fs::path metrics = run / "metrics.jsonl";
  EventFile events(0);
  for (const std::string& line : read_lines(metrics)) {
    const json record = parse_json_or_discard(line, metrics.string());
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) continue;
    const auto step = record["step"].get<int64_t>();
    for (const char* key : {"loss", "grad_norm", "lr_scale", "momentum", "val_loss", "val_bpb"}) {
      // Steps stand in for the wall clock: the file is the same bytes whenever it is made.
      if (record.contains(key) && record[key].is_number())
        events.scalar(key, step, static_cast<double>(step), record[key].get<float>());
    }
  }
  if (const std::error_code error = disk::make_folders(folder))
    throw InputError(folder.string() + ": cannot be created (" + error.message() + ")");
  fs::path path = folder / "events.out.tfevents.0.fairway";
  const WriterLock lock = WriterLock::of_file(path);
  write_file_atomic(path, events.bytes());
  return path;
}

}  // namespace fairway
