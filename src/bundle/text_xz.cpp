#include "bundle/text_xz.h"

#include <lzma.h>

#include <cstdint>
#include <stdexcept>

namespace fairway::bundle {
namespace {

constexpr char kPathMark = 1;

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

std::string text_xz(const std::map<std::string, std::string>& files) {
  std::string text;
  for (const auto& [path, bytes] : files) {
    if (bytes.find(kPathMark) != std::string::npos) throw std::runtime_error(path + ": has a byte 1, which marks a path");
    text += kPathMark + path + '\n' + bytes;
    if (!bytes.ends_with('\n')) text += '\n';
  }
  return xz(text);
}

}  // namespace fairway::bundle
