// Checks a finished folder by the challenge's rules alone: it reads nothing but the folder and shares no code with the writer,
// so that a mistake of one is seen by the other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fairway::submission {

// One sentence for each rule that is broken, beginning with the file; none when all hold.
std::vector<std::string> check_folder(const std::filesystem::path& folder);

}  // namespace fairway::submission
