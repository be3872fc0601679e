// Sources as one text: before each file a line of a byte 1 and its path. A tar spends 500 bytes on every file, of which 20 are
// left after compression. The same files give the same bytes on any machine.
#pragma once

#include <map>
#include <string>

namespace fairway::bundle {

// By path, in that order. Each ends with a newline; std::runtime_error for one that has a byte 1.
std::string one_text(const std::map<std::string, std::string>& files);

}  // namespace fairway::bundle
