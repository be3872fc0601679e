// The challenge's folder of a record: README.md with its tables, submission.json, one log and one receipt for each seed, the
// recipe, the sources, how to build and run them.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "submission/rules.h"

namespace fairway::submission {

struct About {
  std::string name, author, github_id, blurb, date;  // date: YYYY-MM-DD
  std::vector<std::string> against;                  // runs or a published system to compare with; may be empty
  bool artifacts = false;                            // copy the artifacts too
};

struct Sources {
  std::string_view bundle;  // source.7z
  std::string unpack;       // the shell command that makes source/ of it
  std::string version;
};

// The runs must keep the rules. Written beside `out` and renamed, so that a folder is there as a whole or not at all;
// InputError when `out` exists. `check` looks at the finished folder before it has its name, and throws where it should have
// none. Returns submission.json's object.
nlohmann::ordered_json write_folder(const std::filesystem::path& out, std::span<const RunFacts> runs, const About& about,
                                    const Sources& sources,
                                    const std::function<void(const std::filesystem::path&)>& check = {});

// Of the folder, for the README and for tests.
nlohmann::ordered_json submission_json(std::span<const RunFacts> runs, const About& about, const Sources& sources);
std::string readme_text(std::span<const RunFacts> runs, const About& about, const nlohmann::ordered_json& submission);

}  // namespace fairway::submission
