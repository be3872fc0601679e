#include "interchange/zip_archive.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "interchange/little_endian.h"

namespace fairway::interchange {
namespace {

constexpr std::string_view kLocal{"PK\3\4", 4}, kCentral{"PK\1\2", 4}, kEnd{"PK\5\6", 4}, kEnd64{"PK\6\6", 4},
    kLocator64{"PK\6\7", 4};
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint64_t kMostComment = 65535;
constexpr uint64_t kAlignment = 64;  // of data in files that PyTorch writes

uint32_t sum_of(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

bool marked(std::string_view bytes, uint64_t at, std::string_view mark) {
  return at <= bytes.size() && bytes.size() - at >= mark.size() && bytes.substr(at, mark.size()) == mark;
}

// Of the record that ends the file, whose comment fills the rest.
std::optional<uint64_t> find_end(std::string_view bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const uint64_t last = bytes.size() - kEndBytes, first = last > kMostComment ? last - kMostComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (marked(bytes, at, kEnd) && number_at<uint16_t>(bytes, at + 20) == bytes.size() - at - kEndBytes) return at;
  }
  return std::nullopt;
}

// Sizes and offsets beyond 32 bits stand in an extra field, those that do not fit in this order.
bool read_wide(std::string_view extra, uint64_t& size, uint64_t& packed, uint64_t& local) {
  while (extra.size() >= 4) {
    const auto tag = number_at<uint16_t>(extra, 0), length = number_at<uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    if (tag == 1) {
      std::string_view field = extra.substr(4, length);
      for (uint64_t* number : {&size, &packed, &local}) {
        if (*number != 0xFFFFFFFF) continue;
        if (field.size() < 8) return false;
        *number = number_at<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return true;
    }
    extra.remove_prefix(4U + length);
  }
  return size != 0xFFFFFFFF && packed != 0xFFFFFFFF && local != 0xFFFFFFFF;
}

}  // namespace

void ZipArchive::refuse(const std::string& sentence) const { throw InputError(name_ + ": " + sentence); }

ZipArchive::ZipArchive(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
  if (!marked(bytes_, 0, kLocal)) refuse("not a zip file: it does not begin with PK");
  const std::optional<uint64_t> end = find_end(bytes_);
  if (!end)
    refuse(fmt::format("truncated: its {} bytes begin a zip file, and the directory at its end is not there", bytes_.size()));
  uint64_t count = number_at<uint16_t>(bytes_, *end + 10), size = number_at<uint32_t>(bytes_, *end + 12),
           begin = number_at<uint32_t>(bytes_, *end + 16);
  if (*end >= kLocatorBytes && marked(bytes_, *end - kLocatorBytes, kLocator64)) {
    const auto wide = number_at<uint64_t>(bytes_, *end - kLocatorBytes + 8);
    if (wide > bytes_.size() || bytes_.size() - wide < kEnd64Bytes || !marked(bytes_, wide, kEnd64))
      refuse(fmt::format("the zip64 record that should stand at byte {} is not there", wide));
    count = number_at<uint64_t>(bytes_, wide + 32);
    size = number_at<uint64_t>(bytes_, wide + 40);
    begin = number_at<uint64_t>(bytes_, wide + 48);
  }
  if (begin > *end || size > *end - begin)
    refuse(fmt::format("the zip directory ({} bytes from byte {}) lies outside of the file", size, begin));
  read_directory(begin, size, count);
}

void ZipArchive::read_directory(uint64_t begin, uint64_t size, uint64_t count) {
  std::string_view left = bytes_.substr(begin, size);
  for (uint64_t number = 0; number < count; ++number) {
    if (left.size() < kCentralBytes || !marked(left, 0, kCentral))
      refuse(fmt::format("the zip directory ends after {} of {} entries", number, count));
    const auto flags = number_at<uint16_t>(left, 8), method = number_at<uint16_t>(left, 10);
    const uint64_t named = number_at<uint16_t>(left, 28), extra = number_at<uint16_t>(left, 30),
                   comment = number_at<uint16_t>(left, 32);
    Entry entry{number_at<uint32_t>(left, 42), number_at<uint32_t>(left, 24), number_at<uint32_t>(left, 16)};
    uint64_t packed = number_at<uint32_t>(left, 20);
    if (left.size() - kCentralBytes < named + extra + comment)
      refuse(fmt::format("the zip directory ends inside of entry {}", number));
    const std::string name(left.substr(kCentralBytes, named));
    if (!read_wide(left.substr(kCentralBytes + named, extra), entry.size, packed, entry.local))
      refuse("entry '" + name + "': its zip64 field is cut short");
    if (method != 0 || packed != entry.size || (flags & 1) != 0)
      refuse(
          fmt::format("entry '{}' is compressed or encrypted (method {}); PyTorch stores entries as they are", name, method));
    if (!entries_.emplace(name, entry).second) refuse("entry '" + name + "' stands in the zip directory twice");
    left.remove_prefix(kCentralBytes + named + extra + comment);
  }
}

std::string_view ZipArchive::read(const std::string& entry, const std::string& of_what) const {
  const auto found = entries_.find(entry);
  if (found == entries_.end()) refuse("has no entry '" + entry + "', which holds " + of_what);
  const auto& [local, size, crc] = found->second;
  const std::string outside = "entry '" + entry + "' (" + of_what + ") lies outside of the file";
  if (local > bytes_.size() || bytes_.size() - local < kLocalBytes) refuse(outside);
  if (!marked(bytes_, local, kLocal)) refuse("entry '" + entry + "' (" + of_what + ") has no header where the directory says");
  const uint64_t before = kLocalBytes + number_at<uint16_t>(bytes_, local + 26) + number_at<uint16_t>(bytes_, local + 28);
  if (bytes_.size() - local < before || bytes_.size() - local - before < size) refuse(outside);
  const std::string_view data = bytes_.substr(local + before, size);
  if (sum_of(data) != crc)
    refuse(fmt::format("entry '{}' ({}) is damaged: its CRC is {:08x}, the directory says {:08x}", entry, of_what, sum_of(data),
                       crc));
  return data;
}

void ZipWriter::add(const std::string& entry, std::string_view data) {
  const uint64_t begin = file_.size(), bare = begin + kLocalBytes + entry.size() + 4;
  const uint64_t padding = (kAlignment - bare % kAlignment) % kAlignment;
  FAIRWAY_ASSERT(bare + padding + data.size() <= 0xFFFFFFFF && count_ < 0xFFFF, "a zip file without zip64 is too large");
  std::string common;  // of the local header and the directory
  for (const int field : {20, 0, 0, 0, 0x21}) put_number(common, static_cast<uint16_t>(field));  // 1980-01-01
  put_number(common, sum_of(data));
  put_number(common, static_cast<uint32_t>(data.size()));
  put_number(common, static_cast<uint32_t>(data.size()));
  put_number(common, static_cast<uint16_t>(entry.size()));
  file_ += std::string(kLocal) + common;
  put_number(file_, static_cast<uint16_t>(4 + padding));
  file_ += entry + "FB";
  put_number(file_, static_cast<uint16_t>(padding));
  file_ += std::string(padding, 'Z');
  file_ += data;
  directory_ += kCentral;
  put_number(directory_, uint16_t{20});
  directory_ += common + std::string(12, '\0');  // no extra field, comment, disk or attributes
  put_number(directory_, static_cast<uint32_t>(begin));
  directory_ += entry;
  ++count_;
}

std::string ZipWriter::finish() && {
  const auto begin = static_cast<uint32_t>(file_.size());
  file_ += directory_ + std::string(kEnd) + std::string(4, '\0');
  put_number(file_, count_);
  put_number(file_, count_);
  put_number(file_, static_cast<uint32_t>(directory_.size()));
  put_number(file_, begin);
  file_ += std::string(2, '\0');
  return std::move(file_);
}

}  // namespace fairway::interchange
