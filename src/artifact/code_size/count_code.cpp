// Run by the build: count_code ROOT LIST OUT.cpp OUT.tar.xz. Puts the listed files in the order of their paths into a tar
// without dates or owners and compresses it as xz -9e does; the .cpp takes the bytes into the program. The same sources give
// the same bytes on any machine.
#include <lzma.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr size_t kBlock = 512;  // of a tar

std::array<char, kBlock> tar_header(const std::string& path, size_t bytes) {
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

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::cerr << path << ": cannot be read\n";
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string tar_of(const std::filesystem::path& root, const std::vector<std::string>& paths) {
  std::string tar;
  for (const std::string& path : paths) {
    if (path.size() > 99) {
      std::cerr << path << ": longer than a tar header takes\n";
      std::exit(1);
    }
    const std::string bytes = read(root / path);
    const auto header = tar_header(path, bytes.size());
    tar.append(header.data(), header.size()).append(bytes);
    tar.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  }
  return tar.append(2 * kBlock, '\0');
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: count_code ROOT LIST OUT.cpp OUT.tar.xz\n";
    return 2;
  }
  std::vector<std::string> paths;
  std::ifstream list(argv[2]);
  for (std::string line; std::getline(list, line);) {
    if (!line.empty()) paths.push_back(std::filesystem::path(line).lexically_relative(argv[1]).string());
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  const std::string bundle = tar_of(argv[1], paths);
  std::string packed(lzma_stream_buffer_bound(bundle.size()), '\0');
  size_t size = 0;
  if (lzma_easy_buffer_encode(9 | LZMA_PRESET_EXTREME, LZMA_CHECK_CRC64, nullptr,
                              reinterpret_cast<const uint8_t*>(bundle.data()), bundle.size(),
                              reinterpret_cast<uint8_t*>(packed.data()), &size, packed.size()) != LZMA_OK) {
    std::cerr << "the sources could not be compressed\n";
    return 1;
  }
  std::ofstream(argv[4], std::ios::binary).write(packed.data(), static_cast<std::streamsize>(size));
  std::ofstream out(argv[3]);
  out << "// Written by src/artifact/code_size/count_code.cpp from " << paths.size() << " files.\n"
      << "#include \"artifact/code_size/code_bytes.h\"\n\n"
      << "__asm__(\".section .rodata\\n.globl fairway_source_bundle\\nfairway_source_bundle:\\n.incbin \\\"" << argv[4]
      << "\\\"\\n.previous\\n\");\nextern \"C\" const char fairway_source_bundle[];\n\nnamespace fairway {\n\n"
      << "std::string_view source_bundle() { return {fairway_source_bundle, " << size << "}; }\n\n"
      << "int64_t code_bytes() { return " << size << "; }\n\n}  // namespace fairway\n";
  return out.good() ? 0 : 1;
}
