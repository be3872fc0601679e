#include "bundle/needed_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

namespace fairway::bundle {
namespace {

namespace fs = std::filesystem;

std::string stem_of(const std::string& path) { return (fs::path(path).parent_path() / fs::path(path).stem()).string(); }

class Walk {
 public:
  Walk(const std::vector<std::string>& sources, const ReadFile& read) : sources_(sources), read_(read) {
    for (const std::string& source : sources) stems_.insert(stem_of(source));
  }

  std::set<std::string> from(const std::string& main) {
    take(main);
    for (size_t before = 0; before != needed_.size();) {
      before = needed_.size();
      for (const std::string& source : sources_) {
        if (!needed_.contains(source) && implements_needed(source)) take(source);
      }
    }
    return std::move(needed_);
  }

 private:
  void take(const std::string& path) {
    if (!needed_.insert(path).second) return;
    for (const std::string& header : includes(path)) take(header);
  }

  // Ours alone: those that can be read.
  const std::vector<std::string>& includes(const std::string& path) {
    const auto [entry, fresh] = includes_.try_emplace(path);
    if (!fresh) return entry->second;
    std::istringstream lines(read_(path).value_or(""));
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);) {
      const size_t word = line.find_first_not_of(" \t#");
      const size_t open = line.find('"'), close = line.rfind('"');
      if (line.find('#') == std::string::npos || word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
      if (open == std::string::npos || close == open) continue;
      std::string header = line.substr(open + 1, close - open - 1);
      if (read_(header)) found.push_back(std::move(header));
    }
    return includes_[path] = std::move(found);
  }

  // The nearest folder around it with a CMakeLists.txt, which makes one library; else the folder it lies in.
  std::string library_of(const std::string& path) const {
    const fs::path own = fs::path(path).parent_path();
    for (fs::path folder = own; !folder.empty(); folder = folder.parent_path()) {
      if (read_((folder / "CMakeLists.txt").string())) return folder.string();
    }
    return own.string();
  }

  // A source implements the header of its own name. One without such a header implements those of its library that no source
  // has the name of.
  bool implements_needed(const std::string& source) {
    for (const char* ending : {".h", ".cuh"}) {
      const std::string own = stem_of(source) + ending;
      if (read_(own)) return needed_.contains(own);
    }
    std::vector<std::string> beside, implemented;
    for (const std::string& header : includes(source)) {
      const std::string above = fs::path(header).parent_path().string();
      if (!source.starts_with(above) || library_of(header) != library_of(source)) continue;
      beside.push_back(header);
      if (!stems_.contains(stem_of(header))) implemented.push_back(header);
    }
    if (implemented.empty()) implemented = beside;
    return std::any_of(implemented.begin(), implemented.end(), [&](const std::string& h) { return needed_.contains(h); });
  }

  const std::vector<std::string>& sources_;
  const ReadFile& read_;
  std::set<std::string> stems_, needed_;
  std::map<std::string, std::vector<std::string>> includes_;
};

}  // namespace

std::set<std::string> needed_files(const std::string& main, const std::vector<std::string>& sources, const ReadFile& read) {
  return Walk(sources, read).from(main);
}

}  // namespace fairway::bundle
