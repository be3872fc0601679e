// Which files a program is made of, by its includes. Starting from its main file, every header that is included is needed, and
// every source that implements a needed header:
// - a source implements the header of its own name;
// - it also implements the headers of its library that it includes and that have no source of their own name;
// - where there is none of either, it implements every header of its library that it includes.
// Headers of its library: those in its folder and in the folders above it up to the one with a CMakeLists.txt.
// A source that keeps to none of this is missing when the program is linked.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fairway::bundle {

using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;  // nothing where there is no such file

// Paths are relative to the folder that includes are relative to. `sources`: all that could be compiled.
std::set<std::string> needed_files(const std::string& main, const std::vector<std::string>& sources, const ReadFile& read);

}  // namespace fairway::bundle
