#include "bundle/one_text.h"

#include <stdexcept>

namespace fairway::bundle {

std::string one_text(const std::map<std::string, std::string>& files) {
  constexpr char kPathMark = 1;
  std::string text;
  for (const auto& [path, bytes] : files) {
    if (bytes.find(kPathMark) != std::string::npos) throw std::runtime_error(path + ": has a byte 1, which marks a path");
    text += kPathMark + path + '\n' + bytes;
    if (!bytes.ends_with('\n')) text += '\n';
  }
  return text;
}

}  // namespace fairway::bundle
