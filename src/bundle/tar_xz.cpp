#include "bundle/tar_xz.h"

#include <lzma.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace fairway::bundle {
namespace {

constexpr size_t kBlock = 512;  // of a tar

std::array<char, kBlock> tar_header(const std::string& path, size_t bytes) {
  if (path.size() > 99) throw std::runtime_error(path + ": longer than a tar header takes");
  std::array<char, kBlock> header{};
  path.copy(header.data(), 100);
  std::memcpy(header.data() + 100, "0000644", 7);
  for (const size_t owner : {108, 116}) std::memcpy(header.data() + owner, "0000000", 7);
  std::snprintf(header.data() + 124, 12, "%011zo", bytes);
  std::memcpy(header.data() + 136, "00000000000", 11);
  header[156] = '0';
  std::memcpy(header.data() + 257,
              "ustar\0"
              "00",
              8);
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header.data() + 148, 7, "%06o", sum);
  return header;
}

std::string xz(const std::string& bytes) {
  lzma_options_lzma options;
  lzma_lzma_preset(&options, 9 | LZMA_PRESET_EXTREME);
  options.lc = 4;  // text: more of the letter before, nothing of alignment
  options.pb = 0;
  options.nice_len = 273;
  options.depth = 4096;
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string packed(lzma_stream_buffer_bound(bytes.size()), '\0');
  size_t size = 0;
  if (lzma_stream_buffer_encode(const_cast<lzma_filter*>(filters), LZMA_CHECK_CRC32, nullptr,
                                reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                                reinterpret_cast<uint8_t*>(packed.data()), &size, packed.size()) != LZMA_OK)
    throw std::runtime_error("the sources could not be compressed");
  packed.resize(size);
  return packed;
}

}  // namespace

std::string tar_xz(const std::map<std::string, std::string>& files) {
  std::string tar;
  for (const auto& [path, bytes] : files) {
    const auto header = tar_header(path, bytes.size());
    tar.append(header.data(), header.size()).append(bytes);
    tar.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  }
  return xz(tar.append(2 * kBlock, '\0'));
}

}  // namespace fairway::bundle
