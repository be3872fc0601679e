// A .tar.xz without dates or owners, as small as the format allows: the same files give the same bytes on any machine.
#pragma once

#include <map>
#include <string>

namespace fairway::bundle {

// By path, in that order. std::runtime_error for a path that a tar does not take.
std::string tar_xz(const std::map<std::string, std::string>& files);

}  // namespace fairway::bundle
