// Run by the build: count_code ROOT LIST OUT.cpp. Joins the listed files in the order of their paths, each after its path, and
// writes the size of their xz -9e form as a function. The same sources give the same number on any machine.
#include <lzma.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: count_code ROOT LIST OUT.cpp\n";
    return 2;
  }
  std::vector<std::string> paths;
  std::ifstream list(argv[2]);
  for (std::string line; std::getline(list, line);) {
    if (!line.empty()) paths.push_back(std::filesystem::path(line).lexically_relative(argv[1]).string());
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::string bundle;
  for (const std::string& path : paths) {
    std::ifstream file(std::filesystem::path(argv[1]) / path, std::ios::binary);
    if (!file) {
      std::cerr << path << ": cannot be read\n";
      return 1;
    }
    bundle += path + '\n';
    bundle.append(std::istreambuf_iterator<char>(file), {});
  }
  std::string packed(lzma_stream_buffer_bound(bundle.size()), '\0');
  size_t size = 0;
  if (lzma_easy_buffer_encode(9 | LZMA_PRESET_EXTREME, LZMA_CHECK_CRC64, nullptr,
                              reinterpret_cast<const uint8_t*>(bundle.data()), bundle.size(),
                              reinterpret_cast<uint8_t*>(packed.data()), &size, packed.size()) != LZMA_OK) {
    std::cerr << "the sources could not be compressed\n";
    return 1;
  }
  std::ofstream out(argv[3]);
  out << "// Written by src/artifact/code_size/count_code.cpp from " << paths.size() << " files.\n"
      << "#include \"artifact/code_size/code_bytes.h\"\n\nnamespace fairway {\n\nint64_t code_bytes() { return " << size
      << "; }\n\n}  // namespace fairway\n";
  return out.good() ? 0 : 1;
}
