// Run by the build: bundle_sources ROOT LIST OUT.txt OVERLAY... Writes the sources of fairway-record as one text: of the
// sources in LIST and the headers below ROOT/src those that the program needs, stripped, with the files of the OVERLAY folders
// in place of those at the same paths or beside them (an OVERLAY may also be a single file). A line of LIST is a source that
// this build compiles for records: PATH|OPTIONS|DEFINITIONS|ALONE, as CMake has its properties.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

#include "bundle/needed_files.h"
#include "bundle/one_text.h"
#include "bundle/strip_source.h"

namespace {

namespace fs = std::filesystem;
using namespace fairway::bundle;

std::optional<std::string> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path)) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

struct Source {
  std::string path;        // relative to ROOT/src
  std::string properties;  // for CMake; may be empty
};

std::vector<Source> read_list(const fs::path& root, const fs::path& list) {
  std::vector<Source> sources;
  std::ifstream file(list);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string path, options, definitions, alone;
    std::getline(std::getline(std::getline(std::getline(fields, path, '|'), options, '|'), definitions, '|'), alone);
    std::string properties;
    if (!options.empty()) properties += " COMPILE_OPTIONS \"" + options + "\"";
    if (!definitions.empty()) properties += " COMPILE_DEFINITIONS \"" + definitions + "\"";
    if (!alone.empty()) properties += " SKIP_UNITY_BUILD_INCLUSION ON";
    sources.push_back({fs::path(path).lexically_relative(root / "src").string(), properties});
  }
  return sources;
}

// What the overlays hold, relative to the bundle's root.
std::map<std::string, std::string> read_overlays(const fs::path& root, const std::vector<fs::path>& overlays) {
  std::map<std::string, std::string> files;
  for (const fs::path& folder : overlays) {
    if (fs::is_regular_file(folder)) {
      files[folder.lexically_relative(root).string()] = *read(folder);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files[entry.path().lexically_relative(folder).string()] = *read(entry.path());
    }
  }
  return files;
}

std::map<std::string, std::string> bundle_files(const fs::path& root, const fs::path& list,
                                                const std::map<std::string, std::string>& overlay) {
  const std::vector<Source> sources = read_list(root, list);
  std::vector<std::string> paths;
  for (const Source& source : sources) paths.push_back(source.path);
  for (const auto& [path, text] : overlay) {
    if (path.starts_with("src/")) paths.push_back(path.substr(4));
  }
  const ReadFile read_source = [&](const std::string& path) {
    const auto replaced = overlay.find("src/" + path);
    return replaced != overlay.end() ? std::optional(replaced->second) : read(root / "src" / path);
  };
  std::map<std::string, std::string> files;
  const std::set<std::string> needed = needed_files("record/main.cpp", paths, read_source);
  for (const std::string& path : needed) files["src/" + path] = strip_source(*read_source(path));
  for (const auto& [path, text] : overlay) {
    if (!path.starts_with("src/")) files[path] = strip_cmake(text);
  }
  std::string& properties = files["sources.cmake"];
  for (const Source& source : sources) {
    if (needed.contains(source.path) && !source.properties.empty())
      properties += "set_source_files_properties(src/" + source.path + " PROPERTIES" + source.properties + ")\n";
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: bundle_sources ROOT LIST OUT.txt OVERLAY...\n";
    return 2;
  }
  try {
    const std::vector<fs::path> overlays(argv + 4, argv + argc);
    std::ofstream out(argv[3], std::ios::binary);
    out << one_text(bundle_files(argv[1], argv[2], read_overlays(argv[1], overlays)));
    if (!out.flush()) throw std::runtime_error(std::string(argv[3]) + ": cannot be written");
  } catch (const std::exception& error) {
    std::cerr << "bundle_sources: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
